// stem.cpp — the one file that knows Snowball's C interface: a word in, its stem out.
#include "beamwood/text/stem.hpp"

#include <array>
#include <cstring>
#include <new>

#include "snowball/runtime/api.h"

// name: of a language; its three functions are in stem_UTF_8_<name>.c.
#define BEAMWOOD_LANGUAGES(of)                                                                                         \
  of(arabic) of(armenian) of(basque) of(catalan) of(danish) of(dutch) of(english) of(finnish) of(french) of(german)    \
      of(greek) of(hindi) of(hungarian) of(indonesian) of(irish) of(italian) of(lithuanian) of(nepali) of(norwegian)   \
          of(porter) of(portuguese) of(romanian) of(russian) of(serbian) of(spanish) of(swedish) of(tamil) of(turkish) \
              of(yiddish)

extern "C" {
#define BEAMWOOD_DECLARE(name)                                                                                         \
  SN_env* name##_UTF_8_create_env();                                                                                   \
  void name##_UTF_8_close_env(SN_env*);                                                                                \
  int name##_UTF_8_stem(SN_env*);
BEAMWOOD_LANGUAGES(BEAMWOOD_DECLARE)
}

namespace beamwood {
namespace {

struct Language {
  SN_env* (*create)();
  void (*close)(SN_env*);
  int (*stem)(SN_env*);
};

#define BEAMWOOD_NAME(name) std::string_view(#name),
#define BEAMWOOD_FUNCTIONS(name) Language{name##_UTF_8_create_env, name##_UTF_8_close_env, name##_UTF_8_stem},
constexpr std::array kNames = {BEAMWOOD_LANGUAGES(BEAMWOOD_NAME)};
const std::array kLanguages = {BEAMWOOD_LANGUAGES(BEAMWOOD_FUNCTIONS)};

} // namespace

std::span<const std::string_view> stem_languages() noexcept { return kNames; }

Stemmers::Stemmers() = default;
Stemmers::~Stemmers() = default;
Stemmers::Stemmers(Stemmers&&) noexcept = default;
Stemmers& Stemmers::operator=(Stemmers&&) noexcept = default;

void Stemmers::Close::operator()(SN_env* stemmer) const noexcept { kLanguages[language].close(stemmer); }

std::size_t Stemmers::stem(std::size_t language, char* word, std::size_t length) {
  if (length == 0 || length > longest_word || language >= kLanguages.size()) return length;
  while (stemmers_.size() <= language) stemmers_.emplace_back(nullptr, Close{stemmers_.size()});
  auto& stemmer = stemmers_[language];
  if (!stemmer) stemmer.reset(kLanguages[language].create());
  if (!stemmer || SN_set_current(stemmer.get(), static_cast<int>(length), reinterpret_cast<symbol*>(word)) < 0 ||
      kLanguages[language].stem(stemmer.get()) < 0)
    throw std::bad_alloc();
  const auto made = static_cast<std::size_t>(stemmer->l);
  if (made == 0 || made > length + growth) return length;
  std::memcpy(word, stemmer->p, made);
  return made;
}

} // namespace beamwood
