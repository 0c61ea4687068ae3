// Stopped searches: a flag that is set ends every way to search, at once and in the middle of a query.
#include "forests.hpp"

using namespace check;

namespace {

// Sets the flag when so many nodes were looked for, as another thread would while a query runs.
struct StoppingOpener : CascadeOpener {
  StopFlag* flag = nullptr;
  int left = 0, after = 0;

  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): templates call it, nothing is virtual
  bool find(std::size_t l, std::uint32_t node, std::uint32_t parent, std::uint32_t& number) {
    after += flag->load();
    if (--left == 0) flag->store(true);
    return CascadeOpener::find(l, node, parent, number);
  }
};

template <class Function> bool stops(Function&& function) {
  try {
    function();
  } catch (const Stopped&) {
    return true;
  }
  return false;
}

PlainForest deep_forest(Random& random) {
  Plan plan;
  plan.features = 60;
  plan.most_width = plan.least_width = 4;
  plan.layers = 5;
  plan.density = 0.3;
  return plain_forest(random, plan);
}

} // namespace

TEST(a_flag_that_is_set_stops_every_way_to_search) {
  Random random;
  const PlainForest plain = deep_forest(random);
  const OwnedForest own(plain);
  const Rows rows(random, 20, plain.features, 0.3);
  StopFlag flag{false};
  SearchOptions options;
  options.stop = &flag;
  for (const Layout layout : kLayouts) {
    const Forest forest = own.view(layout);
    for (const bool exact : {false, true})
      for (const unsigned threads : {1u, 3u}) {
        Answers answers(rows.queries().size(), options.k);
        Search search;
        const auto run = [&] {
          return search.run(forest, rows.queries(), options, Workers{threads}, answers.labels.data(),
                            answers.scores.data(), nullptr, exact);
        };
        flag = true;
        CHECK(stops(run));
        flag = false;
        CHECK(!stops(run));
      }
  }
}

TEST(a_query_stops_between_its_layers_and_nodes) {
  Random random;
  const PlainForest plain = deep_forest(random);
  const OwnedForest own(plain);
  const Forest forest = own.view(Layout::cascade);
  const Rows rows(random, 1, plain.features, 0.5);
  const SearchOptions options;
  const auto ends = [&](auto&& frontier, std::uint32_t beam, int nodes) {
    StopFlag flag{false};
    StoppingOpener opener;
    opener.flag = &flag, opener.left = nodes;
    Scorer scorer;
    BestLabels sink;
    scorer.start(forest, kScalarKernels, nullptr, &flag);
    sink.reset(forest, 1000);
    opener.start(forest, 0, rows.queries()[0], kScalarKernels, options);
    CHECK(stops([&] { frontier(opener, scorer, sink); }));
    return opener.after <= static_cast<int>(beam);
  };
  for (const int nodes : {1, 4, 9}) {
    Walk walk;
    BestFirst best_first;
    WaitingWalk waiting;
    CHECK(ends([&](auto& opener, auto& scorer, auto& sink) { walk.run(forest, 0, 3, true, opener, scorer, sink); }, 3,
               nodes));
    CHECK(
        ends([&](auto& opener, auto& scorer, auto& sink) { best_first.run(forest, opener, scorer, sink); }, 1, nodes));
    CHECK(ends([&](auto& opener, auto& scorer, auto& sink) { waiting.run(forest, 0, 1000, 2, opener, scorer, sink); },
               2, nodes));
  }
}
