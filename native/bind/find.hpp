// One text to ranked labels with their keys and names, without Python: what the bindings of search and serving share.
#pragma once
#include "forest.hpp"

#include <memory>
#include <string>
#include <string_view>

#include "beamwood/life/curves.hpp"
#include "beamwood/life/tally.hpp"
#include "beamwood/strings.hpp"
#include "beamwood/wire/json.hpp"

// Strings by number, over a blob and offsets that may lie in a damaged file.
struct Strings {
  In<std::uint8_t> blob;
  In<std::uint64_t> offsets;

  bool has(std::uint64_t i) const { return i + 1 < offsets.shape(0); }

  // Throws when the offsets lead outside.
  std::string_view bytes(std::uint64_t i) const {
    const std::uint64_t begin = offsets.data()[i], end = offsets.data()[i + 1];
    if (begin > end || end > blob.shape(0)) throw beamwood::Damaged{};
    return {reinterpret_cast<const char*>(blob.data()) + begin, end - begin};
  }

  // Bytes that are not UTF-8 are replaced.
  nb::object at(std::uint64_t i) const {
    const std::string_view text = bytes(i);
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  }
};

// What an answer shows of a label beside its number and score: its key, its name, and how probable it is.
struct Captions {
  const Strings *keys, *names; // null: numbers; the keys
  In<std::uint32_t> ranks;     // of the curves, as are the next two; empty: not calibrated
  In<float> scores, probabilities;
  float least; // what labels above the stored cut reach; NaN: there is none
  std::unique_ptr<beamwood::AnswerTally> given = std::make_unique<beamwood::AnswerTally>(); // by all answers so far

  void count(const std::int64_t* labels, const float* values, std::size_t size, bool has_terms) const {
    given->add(labels, values, size, has_terms, curves(), least);
  }
  beamwood::Curves curves() const {
    return {{ranks.data(), ranks.shape(0)},
            {scores.data(), scores.shape(0)},
            {probabilities.data(), probabilities.shape(0)}};
  }
};

// What an answer says of the members that listed a label.
inline constexpr const char* kFoundBy[] = {"", "trees", "words", "both"};

// Ranked labels as the fields of a JSON object: hits, those that score at least `least`, and known_terms. listed_by:
// which members listed each label; null where a model has one.
inline void put_hits(const std::int64_t* labels, const float* scores, const std::uint8_t* listed_by, std::size_t count,
                     const Captions& captions, float least, std::size_t known_terms, std::string& out) {
  const Strings *const keys = captions.keys, *const names = captions.names;
  const beamwood::Curves curves = captions.curves();
  out += "\"hits\":[";
  for (std::size_t i = 0; i < count && labels[i] >= 0; ++i) {
    if (!(scores[i] >= least)) continue;
    const auto label = static_cast<std::uint64_t>(labels[i]);
    const std::string number = keys && keys->has(label) ? std::string() : std::to_string(label);
    const std::string_view key = number.empty() ? keys->bytes(label) : std::string_view(number);
    out += out.back() == '[' ? "{\"label\":" : ",{\"label\":";
    beamwood::json::put_number(label, out);
    out += ",\"key\":";
    beamwood::json::put_string(key, out);
    out += ",\"name\":";
    beamwood::json::put_string(names && names->has(label) ? names->bytes(label) : key, out);
    out += ",\"score\":";
    beamwood::json::put_number(scores[i], out);
    if (!curves.empty()) {
      out += ",\"probability\":";
      beamwood::json::put_number(curves.at(i, scores[i]), out);
    }
    if (listed_by) ((out += ",\"found_by\":\"") += kFoundBy[listed_by[i] & 3]) += '"';
    out += '}';
  }
  captions.count(labels, scores, count, known_terms > 0);
  out += "],\"known_terms\":";
  beamwood::json::put_number(std::uint64_t{known_terms}, out);
}

// Which members listed the labels of a scratch's answer; null where a model has one.
inline const std::uint8_t* listed_by(const CallScratch& scratch) {
  return scratch.found.empty() ? nullptr : scratch.found.data();
}

// What is asked of one text, but for the text. options: with k and beam.
struct Asked {
  beamwood::SearchOptions options;
  const beamwood::Filter* filter;
};

struct Found {
  bool sound = true;
  std::size_t count = 0; // of the scratch's labels and scores
  std::uint64_t nanoseconds = 0;
};

// Text to labels and scores in the scratch. Needs no Python.
Found find(PyForest& self, const beamwood::Vectorizer& vectorizer, std::string_view text, const Asked& asked,
           CallScratch& scratch);
