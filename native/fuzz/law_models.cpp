// A number of random models in, one hash of all their answers out: the same number on every machine.
// Usage: beamwood_law_models [models] [seed] [only this model]
//
// Every model is asked in every layout, by every matcher, with every instruction set of the machine, filtered and
// exactly; every tenth is a layer that is trained first, by each loss. Answers must equal the plain search's, so that a
// hash that differs between two machines means that the plain search differs there. NaN is one value.
#include <chrono>
#include <cstdlib>

#include "beamwood/members/head.hpp"
#include "beamwood/text/natural_log.hpp"
#include "forests.hpp"
#include "problems.hpp"

using namespace check;

namespace {

// FNV-1a over numbers.
class Hash {
public:
  void add(std::uint64_t number) noexcept {
    for (int byte = 0; byte < 8; ++byte) state_ = (state_ ^ (number >> 8 * byte & 255)) * 0x100000001b3ull;
  }
  void add(float number) noexcept {
    add(std::uint64_t{std::isnan(number) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(number)});
  }
  void add(double number) noexcept { add(std::isnan(number) ? 0 : std::bit_cast<std::uint64_t>(number)); }
  void add(const Answers& answers) {
    for (const std::int64_t label : answers.labels) add(static_cast<std::uint64_t>(label));
    for (const float score : answers.scores) add(score);
  }
  std::uint64_t value() const noexcept { return state_; }

private:
  std::uint64_t state_ = 0xcbf29ce484222325ull;
};

void check_variants(Random& random, const OwnedForest& own, std::span<const Query> queries, SearchOptions options,
                    const Answers& expected, int model) {
  for (const Layout layout : kLayouts) {
    const Forest forest = own.view(layout);
    for (const Isa isa : isas_here()) {
      options.isa = isa;
      for (const Matcher matcher : kMatchers) {
        options.matcher = matcher;
        options.choose = random.chance(0.2);
        options.bound = random.chance(0.8);
        options.sort_blocks = random.chance(0.8);
        CLAIM(search(forest, queries, options, random.between(1, 2)) == expected, "model " + std::to_string(model));
      }
    }
  }
}

// A filter and the search without a beam, in one layout each: what they answer goes into the hash.
void add_others(Random& random, const OwnedForest& own, std::span<const Query> queries, const SearchOptions& options,
                Hash& hash) {
  const Forest forest = own.view(Layout::cascade);
  Filter filter;
  std::vector<std::uint8_t> allowed(own.labels);
  for (std::uint8_t& one : allowed) one = random.chance(0.5);
  CHECK(filter.build(forest, allowed));
  for (const bool exact : {false, true}) {
    Answers answers(queries.size(), options.k);
    Search search;
    const Filter* const only = exact ? nullptr : &filter;
    if (exact && !forest.activation.only_shrinks()) continue;
    CHECK(search.run(forest, queries, options, Workers{}, answers.labels.data(), answers.scores.data(), only, exact));
    hash.add(answers);
  }
}

void add_functions(Random& random, Hash& hash) {
  for (int i = 0; i < 100; ++i) {
    const double x = static_cast<double>(random.number()) * 20;
    hash.add(exp_of(x));
    hash.add(log1p_of(std::abs(x) / 40));
    hash.add(log_of(std::abs(x) + 1e-9));
    hash.add(natural_log(1 + std::abs(x)));
  }
}

void add_training(Random& random, Hash& hash) {
  const Layer layer = random_layer(random, {.weights = random.chance(0.5), .relevance = random.chance(0.5)});
  for (const Loss loss : {Loss::squared_hinge, Loss::hinge, Loss::logistic}) {
    SolverSettings settings;
    settings.loss = loss;
    settings.eps = 1e-3;
    settings.max_iter = 8;
    settings.seed = random.next();
    settings.isa = best_isa();
    Progress progress;
    for (const LearnedNode& node : train_layer(layer.problem(), settings, Workers{1}, progress)) {
      hash.add(node.bias);
      for (const Entry& entry : node.weight) hash.add(std::uint64_t{entry.feature}), hash.add(entry.value);
    }
  }
}

std::uint64_t hash_of_model(int model) {
  Hash hash;
  Random random(check::seed * 1'000'003 + static_cast<std::uint64_t>(model));
  const PlainForest plain = plain_forest(random, random_plan(random));
  const OwnedForest own(plain);
  const Rows rows(random, random.between(1, 8), plain.features, 0.3);
  SearchOptions options;
  options.k = random.between(1, 12);
  options.beam = random.between(1, 8);
  const Answers expected = plain_search(plain, rows.queries(), options.k, options.beam);
  hash.add(expected);
  check_variants(random, own, rows.queries(), options, expected, model);
  Random others(check::seed + static_cast<std::uint64_t>(model)); // does not depend on how many variants there were
  add_others(others, own, rows.queries(), options, hash);
  for (const WeightKind kind : {WeightKind::f16, WeightKind::u8}) { // weights in fewer bytes, by every instruction set
    const OwnedForest compact(plain, kind);
    options.choose = true;
    options.isa = Isa::scalar;
    const Answers first = search(compact.view(Layout::cascade), rows.queries(), options);
    for (const Isa isa : isas_here())
      options.isa = isa, CHECK(search(compact.view(Layout::cascade), rows.queries(), options) == first);
    hash.add(first);
  }
  if (model % 10 == 0) add_functions(others, hash), add_training(others, hash);
  return hash.value();
}

} // namespace

int main(int count, char** arguments) {
  const int models = count > 1 ? static_cast<int>(std::strtol(arguments[1], nullptr, 10)) : 1000;
  check::seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  const int only = count > 3 ? static_cast<int>(std::strtol(arguments[3], nullptr, 10)) : -1;
  const auto begin = std::chrono::steady_clock::now();
  Hash all;
  for (int model = only < 0 ? 0 : only; model < (only < 0 ? models : only + 1); ++model) {
    const std::uint64_t one = hash_of_model(model);
    if (std::getenv("BEAMWOOD_HASHES")) std::printf("model %d %016llx\n", model, static_cast<unsigned long long>(one));
    all.add(one);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::string names;
  for (const Isa isa : isas_here()) names += std::string(" ") + kernels_for(isa)->name;
  std::fprintf(stderr, "%d models (seed %llu) by%s: %d claims failed, %.1f s\n", models,
               static_cast<unsigned long long>(check::seed), names.c_str(), check::failures, seconds.count());
  std::printf("%016llx\n", static_cast<unsigned long long>(all.value()));
  return check::failures == 0 ? 0 : 1;
}
