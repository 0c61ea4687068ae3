// cluster.hpp: rows that could lead outside are refused; sums and compact copies are those of the rows.
#include "beamwood/training/kernels.hpp"
#include "problems.hpp"

using namespace check;
using namespace beamwood;

TEST(rows_that_lead_outside_are_refused) {
  Random random;
  const Sparse good = random_sparse(random, 9, 20, 5);
  CHECK(well_formed(good.rows()));
  const auto refused = [&](auto&& damage) {
    Sparse bad = good;
    damage(bad);
    return !well_formed(bad.rows());
  };
  CHECK(refused([](Sparse& s) { s.start.clear(); }));
  CHECK(refused([](Sparse& s) { s.start.front() = 1; }));
  CHECK(refused([](Sparse& s) { s.start[4] = -1; }));
  CHECK(refused([](Sparse& s) { s.start[4] = s.start[5] + 1; }));
  CHECK(refused([](Sparse& s) { s.start.back() += 1; }));
  CHECK(refused([](Sparse& s) { s.value.pop_back(); }));
  CHECK(refused([](Sparse& s) { s.index[3] = -1; }));
  CHECK(refused([](Sparse& s) { s.index[3] = 20; }));
  CHECK(refused([](Sparse& s) { s.value[3] = std::numeric_limits<float>::quiet_NaN(); }));
  CHECK(refused([](Sparse& s) { s.value[3] = -std::numeric_limits<float>::infinity(); }));
}

TEST(dot_and_add_scaled_are_plain_sums) {
  Random random;
  const Sparse rows = random_sparse(random, 30, 40, 11);
  std::vector<float> vector(40);
  for (float& v : vector) v = random.number();
  for (std::size_t r = 0; r < rows.lines(); ++r) {
    double sum = 0;
    std::vector<float> added = vector, expected = vector;
    for (const auto& [f, v] : rows.line(r)) {
      sum += static_cast<double>(v) * vector[static_cast<std::size_t>(f)];
      expected[static_cast<std::size_t>(f)] += 0.5f * v;
    }
    CHECK(std::fabs(dot(rows.rows(), r, vector.data()) - sum) < 1e-5);
    add_scaled(rows.rows(), r, 0.5f, added.data());
    CHECK(added == expected);
  }
}

TEST(a_compact_copy_has_the_same_rows_and_leaves_its_scratch_blank) {
  Random random;
  const Sparse rows = random_sparse(random, 50, 500, 9);
  std::vector<std::uint32_t> members;
  for (std::uint32_t r = 0; r < 50; ++r)
    if (random.chance(0.4)) members.push_back(r);
  std::vector<std::int32_t> number(500, -1);
  CompactRows compact;
  compact.copy(rows.rows(), members, number);
  CHECK(std::ranges::count(number, -1) == 500);
  const SparseRows copy = compact.view();
  CHECK(well_formed(copy));
  CHECK(copy.size() == members.size());
  for (std::size_t a = 0; a < members.size(); ++a) {
    const auto line = rows.line(members[a]);
    CHECK(copy.entries(a) == line.size());
    std::size_t e = copy.begin(a);
    for (const auto& [f, v] : line) CHECK(copy.value[e++] == v);
  }
}

TEST(the_product_with_a_table_has_the_same_bits_for_every_isa) {
  Random random;
  const Sparse rows = random_sparse(random, 20, 30, 12);
  for (const std::size_t width : {8u, 16u, 32u, 40u, 64u, 104u, 256u}) {
    std::vector<float> table(30 * width);
    for (float& v : table) v = random.number();
    for (std::size_t r = 0; r < rows.lines(); ++r) {
      const SparseRows view = rows.rows();
      std::vector<float> expected(width, 0.0f);
      for (std::size_t c = 0; c < width; ++c)
        for (const auto& [f, v] : rows.line(r)) expected[c] += v * table[static_cast<std::size_t>(f) * width + c];
      for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
        const TrainingKernels* const kernels = kTrainingKernels.on(isa);
        if (!kernels) continue;
        std::vector<float> score(width);
        kernels->table_product(view.feature.data() + view.begin(r), view.value.data() + view.begin(r), view.entries(r),
                               table.data(), width, score.data(), width);
        CHECK(score == expected);
      }
    }
  }
}
