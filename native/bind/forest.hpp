// A forest whose arrays Python owns, and the scratch memory of its calls: what the bindings of engine and search share.
#pragma once
#include "bindings.hpp"

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include "beamwood/engine/search.hpp"
#include "beamwood/mapped.hpp"
#include "beamwood/text/vectorize.hpp"

// Calls never share scratch memory: each takes a search from here and gives it back. What is kept grows to the
// number of calls that ran at once.
template <class T> class Shelf {
public:
  class Loan {
  public:
    explicit Loan(Shelf& shelf) : shelf_(shelf), item_(shelf.take()), failures_(std::uncaught_exceptions()) {}
    // What a failed call (out of memory, Ctrl-C) leaves half done is thrown away.
    ~Loan() {
      if (std::uncaught_exceptions() == failures_) shelf_.give(std::move(item_));
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    T* operator->() const noexcept { return item_.get(); }
    T& operator*() const noexcept { return *item_; }

  private:
    Shelf& shelf_;
    std::unique_ptr<T> item_;
    int failures_;
  };

private:
  // Nobody waits here: a fork may have copied the lock while another thread held it, and then it stays shut for ever.
  std::unique_ptr<T> take() {
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard || items_.empty()) return std::make_unique<T>();
    auto item = std::move(items_.back());
    items_.pop_back();
    return item;
  }
  void give(std::unique_ptr<T> item) noexcept {
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return;
    try {
      items_.push_back(std::move(item));
    } catch (const std::bad_alloc&) { // no memory to keep it in: it is freed
    }
  }

  std::mutex lock_;
  std::vector<std::unique_ptr<T>> items_;
};

// The fault of a damaged model, after the kinds of RowFault; Python knows it as _core.DAMAGED.
inline constexpr int kDamaged = 5;

// Where labels and scores of a search go, a row per query; found may be null.
struct AnswerRows {
  std::int64_t* labels;
  float* scores;
  std::uint8_t* found = nullptr; // which members listed each label
};

// Made, searched with and freed by find.cpp only: searches are much code, and one copy of it is enough.
struct CallScratch {
  CallScratch();
  ~CallScratch();
  bool run(const beamwood::Forest& forest, std::span<const beamwood::Query> queries,
           const beamwood::SearchOptions& options, const beamwood::Workers& workers, const beamwood::Filter* filter,
           bool exact, AnswerRows answer); // false: damaged

  beamwood::QueryBatch batch;
  beamwood::Search search;
  beamwood::TextScratch text;
  std::vector<std::uint32_t> ids;
  std::vector<float> values, scores;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> found; // which members listed each label; empty where a model has one
};

struct PyForest {
  beamwood::Forest forest;
  std::vector<std::shared_ptr<void>> owners; // keeps the arrays that the spans look at
  Shelf<CallScratch> shelf;
  std::vector<beamwood::MappedRange*> files; // that the arrays are mapped from: one, as a rule

  // Whether an answer that was just found may be given: the files were there all the time.
  bool intact() const noexcept {
    return std::ranges::all_of(files, [](auto* file) { return file->intact(); });
  }
  void watch(const void* array) {
    beamwood::MappedRange* const file = beamwood::range_of(array);
    if (file && std::ranges::find(files, file) == files.end()) files.push_back(file);
  }

  template <class... Arrays> void keep(const Arrays&... arrays) {
    (owners.push_back(std::make_shared<Arrays>(arrays)), ...);
    (watch(arrays.data()), ...);
  }
};

// A filter may only be used with trees of the shape it was built for.
inline void check_fits(const beamwood::Filter* filter, const PyForest& forest) {
  if (filter && !filter->fits(forest.forest)) throw nb::value_error("the filter belongs to another model");
}

// What one call asks of an engine: its own k and beam, and whatever may stop this thread.
inline beamwood::SearchOptions asked_of(beamwood::SearchOptions engine, std::size_t k, std::uint32_t beam) {
  engine.k = static_cast<std::uint32_t>(k);
  engine.beam = beam;
  engine.stop = current_stop;
  return engine;
}
