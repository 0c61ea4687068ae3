// What all bindings share: the array types that may cross, and workers that listen to Ctrl-C.
#pragma once
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#pragma GCC diagnostic pop

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "beamwood/parallel.hpp"

namespace nb = nanobind;

// Waits for Python's lock. Where the interpreter ends meanwhile, a Python before 3.14 makes the waiting thread exit by an
// unwinding that ends the whole process at the first frame which may not throw, as nanobind's guards do. As in 3.14 such a
// thread sleeps instead, until the process is gone.
template <class Wait> auto wait_for_lock(Wait&& wait) noexcept {
  try {
    return wait();
  } catch (...) {
    for (;;) pause();
  }
}

// Without Python's lock as long as it lives.
class Unlocked {
public:
  Unlocked() noexcept : thread_(PyEval_SaveThread()) {}
  ~Unlocked() {
    wait_for_lock([this] { return PyEval_RestoreThread(thread_); });
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

private:
  PyThreadState* thread_;
};

// With it.
class Locked {
public:
  Locked() noexcept : state_(wait_for_lock([] { return PyGILState_Ensure(); })) {}
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

private:
  PyGILState_STATE state_;
};

// A contiguous one-dimensional array that native code only reads, or one that Python allocated for it to fill.
template <class T> using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T> std::span<const T> view(const In<T>& array) { return {array.data(), array.shape(0)}; }
template <class T> std::span<T> view(const Out<T>& array) { return {array.data(), array.shape(0)}; }

// An array that native code made.
template <class T> using Made = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// A Python sequence, whose items are read here: nanobind's own casters may not throw, so that memory which is refused in
// one of them would end the process.
template <class T> using Many = nb::typed<nb::sequence, T>;
template <class T> std::vector<T> items_of(const Many<T>& given) {
  std::vector<T> items;
  items.reserve(nb::len(given));
  for (const nb::handle item : given) items.push_back(nb::cast<T>(item));
  return items;
}

// Hands a vector to numpy without a copy.
template <class T> Made<T> give(std::vector<T>&& values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  std::vector<T>* const raw = owned.release();
  nb::capsule owner(raw, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Made<T>(raw->data(), {raw->size()}, owner);
}

// What ends the native work of this thread, where something can: set while a `Stop` is entered (server/long_work.cpp).
inline thread_local const beamwood::StopFlag* current_stop = nullptr;

// Workers whose caller asks Python for signals every 50 ms: the one way native code hears Ctrl-C. Call it with the GIL,
// work without. `also` is called as often, with the GIL, and returns false after it has set a Python error.
// After either the Python error is set and `Interrupted` ends the call; module.cpp raises that error.
// Each worker has scratch memory of its own, so an absurd number of threads is cut down; no result depends on it.
inline beamwood::Workers python_workers(unsigned threads, std::function<bool()> also = {}) {
  using Clock = std::chrono::steady_clock;
  constexpr unsigned kMostThreads = 1024;
  return {std::clamp(threads, 1u, kMostThreads),
          [last = Clock::now(), stop = current_stop, also = std::move(also)]() mutable {
            beamwood::check_stop(stop);
            const auto now = Clock::now();
            if (now - last < std::chrono::milliseconds(50)) return false;
            last = now;
            const Locked gil;
            return PyErr_CheckSignals() != 0 || (also && !also());
          }};
}

void bind_engine(nb::module_& m);
void bind_layouts(nb::module_& m);
void bind_update(nb::module_& m);
void bind_postings(nb::module_& m);
void bind_filter(nb::module_& m);
void bind_explain(nb::module_& m);
void bind_score(nb::module_& m);
void bind_training(nb::module_& m);
void bind_search(nb::module_& m);
void bind_serving(nb::module_& m);
void bind_long_work(nb::module_& m);
void bind_text(nb::module_& m);
void bind_strings(nb::module_& m);
void bind_clustering(nb::module_& m);
void bind_word_vectors(nb::module_& m);
void bind_readers(nb::module_& m);
void bind_mapping(nb::module_& m);
void bind_split(nb::module_& m);
