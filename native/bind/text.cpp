// The bindings of text: lists of str go in, counted terms, hash slots and sparse rows come out as arrays.
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "beamwood/text/count_terms.hpp"
#include "beamwood/text/vectorize.hpp"
#include "utf8.hpp"

namespace {

using namespace beamwood;

// The words of a str list, each as the rules write it: what a stop word is compared with.
std::shared_ptr<const WordSet> stop_words(const nb::list& words, TermRules rules) {
  if (words.size() == 0) return nullptr;
  rules.min_n = rules.max_n = 1;
  rules.min_letters = 1;
  const Utf8Texts utf8(words);
  std::vector<std::string> written;
  TermScratch scratch;
  for (const std::string_view word : utf8.views())
    for_each_term(word, rules, scratch,
                  [&](const char* bytes, std::size_t length) { written.emplace_back(bytes, length); });
  return std::make_shared<const WordSet>(std::move(written));
}

// (splitter, min_n, max_n, lowercase, min_letters, max_tokens, fold, signs, segment, stem, stop): stem is a place in
// stem_languages or -1, stop a list of str.
TermRules term_rules(const nb::tuple& given) {
  TermRules rules{nb::cast<Splitter>(given[0]), nb::cast<std::uint32_t>(given[1]), nb::cast<std::uint32_t>(given[2]),
                  nb::cast<bool>(given[3]),     nb::cast<std::uint32_t>(given[4]), nb::cast<std::uint32_t>(given[5]),
                  nb::cast<bool>(given[6]),     nb::cast<bool>(given[7]),          nb::cast<bool>(given[8])};
  rules.stop = stop_words(nb::cast<nb::list>(given[10]), rules);
  if (const int stem = nb::cast<int>(given[9]); stem >= 0) rules.stem = static_cast<std::size_t>(stem);
  return rules;
}

// The terms of one text, repeated as they stand in it.
nb::list terms_of(const nb::tuple& rules, nb::handle text) {
  nb::object keeper;
  TermScratch scratch;
  nb::list terms;
  for_each_term(utf8_of(text, keeper), term_rules(rules), scratch, [&](const char* bytes, std::size_t length) {
    terms.append(nb::steal(PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(length), "surrogatepass")));
  });
  return terms;
}

// (binary, sublinear_tf, norm)
WeighRules weigh_rules(const nb::tuple& rules) {
  return {nb::cast<bool>(rules[0]), nb::cast<bool>(rules[1]), nb::cast<Norm>(rules[2])};
}

TermCounter make_counter(const nb::tuple& blocks) {
  std::vector<TermRules> rules;
  for (nb::handle block : blocks) rules.push_back(term_rules(nb::cast<nb::tuple>(block)));
  return TermCounter(std::move(rules));
}

void count_texts(TermCounter& counter, const nb::list& texts, unsigned threads) {
  const Utf8Texts utf8(texts);
  const Workers workers = python_workers(threads);
  Unlocked unlocked;
  counter.add(utf8.views(), workers);
}

nb::tuple finish_block(TermCounter& counter, std::size_t block, double fewest, double most) {
  SortedTerms sorted = [&] {
    Unlocked unlocked;
    return counter.finish(block, fewest, most);
  }();
  return nb::make_tuple(give(std::move(sorted.terms)), give(std::move(sorted.offsets)), give(std::move(sorted.texts)),
                        give(std::move(sorted.places)));
}

// Throws when following the offsets would leave the bytes.
void check_offsets(std::span<const std::uint8_t> terms, std::span<const std::uint64_t> offsets) {
  bool whole = !offsets.empty() && offsets.front() == 0 && offsets.back() == terms.size();
  for (std::size_t i = 0; whole && i + 1 < offsets.size(); ++i) whole = offsets[i] <= offsets[i + 1];
  if (!whole) raise("FormatError", "the vocabulary's offsets do not rise from 0 to the number of bytes");
}

Made<std::uint64_t> make_slots(const In<std::uint8_t>& terms, const In<std::uint64_t>& offsets) {
  check_offsets(view(terms), view(offsets));
  std::vector<std::uint64_t> slots(TermSlots::count(offsets.size() - 1));
  {
    const Workers workers = python_workers(1);
    Unlocked unlocked;
    fill_slots<TermSlots>({view(terms), view(offsets)}, slots, workers);
  }
  return give(std::move(slots));
}

// Blocks as (term rules, weigh rules, terms, offsets, slots, idf, letters); the tuple is kept alive by the caller's binding.
// norm: of the whole row, once its blocks stand side by side.
Vectorizer make_vectorizer(const nb::tuple& blocks, Norm norm) {
  std::vector<Vectorizer::Block> made;
  for (nb::handle handle : blocks) {
    const auto block = nb::cast<nb::tuple>(handle);
    made.push_back(
        {term_rules(nb::cast<nb::tuple>(block[0])), weigh_rules(nb::cast<nb::tuple>(block[1])),
         Vocabulary::checked(view(nb::cast<In<std::uint8_t>>(block[2])), view(nb::cast<In<std::uint64_t>>(block[3])),
                             view(nb::cast<In<std::uint64_t>>(block[4])), view(nb::cast<In<double>>(block[5]))),
         view(nb::cast<In<std::uint32_t>>(block[6]))});
  }
  return Vectorizer(std::move(made), norm);
}

// The rows of one task, and then of all tasks in order.
struct Rows {
  std::vector<std::int64_t> lengths;
  std::vector<std::uint32_t> ids;
  std::vector<float> values;
  bool whole = true;
};

void transform_task(const Vectorizer& vectorizer, std::span<const std::string_view> texts, bool guess,
                    TextScratch& scratch, Rows& rows) {
  for (const std::string_view text : texts) {
    const std::size_t before = rows.ids.size();
    rows.whole = rows.whole && vectorizer.append_one(text, scratch, rows.ids, rows.values, guess);
    rows.lengths.push_back(static_cast<std::int64_t>(rows.ids.size() - before));
  }
  if (guess) vectorizer.count(scratch); // texts that a model learns from are no queries
}

Rows transform_all(const Vectorizer& vectorizer, std::span<const std::string_view> texts, bool guess,
                   const Workers& workers) {
  constexpr std::size_t texts_per_task = 128;
  const std::size_t tasks = (texts.size() + texts_per_task - 1) / texts_per_task;
  std::vector<Rows> parts(tasks);
  std::vector<TextScratch> scratch(std::max(1u, workers.threads));
  parallel_for(workers, tasks, [&](std::size_t task, unsigned worker) {
    const std::size_t from = task * texts_per_task;
    const std::size_t count = std::min(texts_per_task, texts.size() - from);
    transform_task(vectorizer, texts.subspan(from, count), guess, scratch[worker], parts[task]);
  });
  Rows all;
  std::size_t total = 0;
  for (const Rows& part : parts) total += part.ids.size();
  all.ids.reserve(total), all.values.reserve(total), all.lengths.reserve(texts.size());
  for (Rows& part : parts) {
    all.lengths.insert(all.lengths.end(), part.lengths.begin(), part.lengths.end());
    all.ids.insert(all.ids.end(), part.ids.begin(), part.ids.end());
    all.values.insert(all.values.end(), part.values.begin(), part.values.end());
    all.whole = all.whole && part.whole;
    part = Rows();
  }
  return all;
}

nb::tuple transform(const Vectorizer& vectorizer, const nb::list& texts, unsigned threads, bool guess) {
  const Utf8Texts utf8(texts);
  const Workers workers = python_workers(threads);
  Rows rows = [&] {
    Unlocked unlocked;
    return transform_all(vectorizer, utf8.views(), guess, workers);
  }();
  if (!rows.whole)
    raise("FormatError", "the stored vocabulary is damaged: a hash slot, an offset or an idf is out of range; "
                         "fit or save the model again, or restore the file from a copy");
  return nb::make_tuple(give(std::move(rows.lengths)), give(std::move(rows.ids)), give(std::move(rows.values)));
}

// The classes of one code point and what it lowers to by itself: lets tests compare the tables with Python's.
nb::tuple character(std::uint32_t code) {
  const unicode::Record& record = unicode::record_of(code < 0x110000 ? code : unicode::replacement);
  return nb::make_tuple(record.flags, static_cast<std::int64_t>(code) + record.lower);
}

} // namespace

void bind_text(nb::module_& m) {
  m.attr("unicode_version") = unicode::version;
  m.def("character", &character, nb::arg("code"));
  nb::list languages;
  for (const std::string_view name : stem_languages()) languages.append(nb::str(name.data(), name.size()));
  m.attr("stem_languages") = nb::tuple(languages);
  m.def("terms_of", &terms_of, nb::arg("rules"), nb::arg("text"));
  nb::enum_<Splitter>(m, "Splitter", "How a text is taken apart; `given`: into the words that a tokenizer found.")
      .value("word", Splitter::word)
      .value("char_wb", Splitter::char_wb)
      .value("space", Splitter::space)
      .value("line", Splitter::line)
      .value("given", Splitter::given);
  nb::enum_<Norm>(m, "Norm").value("none", Norm::none).value("l1", Norm::l1).value("l2", Norm::l2);
  nb::class_<TermCounter>(m, "TermCounter")
      .def(
          "__init__", [](TermCounter* self, const nb::tuple& blocks) { new (self) TermCounter(make_counter(blocks)); },
          nb::arg("blocks"))
      .def("add", &count_texts, nb::arg("texts"), nb::arg("threads"))
      .def("finish", &finish_block, nb::arg("block"), nb::arg("fewest"), nb::arg("most"))
      .def_prop_ro("texts", &TermCounter::texts);
  m.def("make_slots", &make_slots, nb::arg("terms"), nb::arg("offsets"));
  nb::class_<Vectorizer>(m, "Vectorizer")
      .def(
          "__init__",
          [](Vectorizer* self, const nb::tuple& blocks, Norm norm) {
            new (self) Vectorizer(make_vectorizer(blocks, norm));
          },
          nb::arg("blocks"), nb::arg("norm"), nb::keep_alive<1, 2>())
      .def("transform", &transform, nb::arg("texts"), nb::arg("threads"), nb::arg("guess") = true)
      .def(
          "take_terms",
          [](const Vectorizer& self) {
            return nb::make_tuple(self.terms().known.exchange(0), self.terms().unknown.exchange(0));
          },
          "Terms of queries that the vocabulary had, and lacked, since this was last asked.")
      .def_prop_ro("columns", &Vectorizer::columns);
}
