// Queries or a text in, labels and scores out: the one source that the code of searches is compiled in.
#include "find.hpp"

#include <chrono>

using namespace beamwood;

CallScratch::CallScratch() = default;
CallScratch::~CallScratch() = default;

bool CallScratch::run(const Forest& forest, std::span<const Query> queries, const SearchOptions& options,
                      const Workers& workers, const Filter* filter, bool exact, AnswerRows answer) {
  return search.run(forest, queries, options, workers, answer.labels, answer.scores, filter, exact, answer.found);
}

Found find(PyForest& self, const Vectorizer& vectorizer, std::string_view text, const Asked& asked,
           CallScratch& scratch) {
  Found found;
  const FloatMode mode;
  // A damaged vocabulary may name features that the forest does not have.
  found.sound = vectorizer.transform_one(text, scratch.text, scratch.ids, scratch.values) &&
                (scratch.ids.empty() || scratch.ids.back() < self.forest.features);
  vectorizer.count(scratch.text);
  if (!self.intact()) found.sound = false; // words that a vanished file no longer knows are not unknown words
  if (!found.sound || scratch.ids.empty()) return found;
  if (self.forest.unit_rows) to_unit_length(scratch.values.data(), scratch.values.size(), scratch.values.data());
  scratch.labels.resize(asked.options.k);
  scratch.scores.resize(asked.options.k);
  scratch.found.resize(self.forest.head ? asked.options.k : 0);
  const Query query{scratch.ids.data(), scratch.values.data(), static_cast<std::uint32_t>(scratch.ids.size())};
  const AnswerRows answer{scratch.labels.data(), scratch.scores.data(), scratch.found.data()};
  const auto begin = std::chrono::steady_clock::now();
  found.sound = scratch.run(self.forest, {&query, 1}, asked.options, Workers{}, asked.filter, false, answer);
  found.nanoseconds =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  found.sound = found.sound && self.intact();
  found.count = found.sound ? asked.options.k : 0;
  return found;
}
