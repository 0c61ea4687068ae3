// csr.hpp: what a caller may hand in, and what is said about it.
#include "forests.hpp"

using namespace check;

namespace {

RowCheck checked(std::vector<std::int64_t> offsets, std::vector<std::int32_t> features, std::vector<float> values,
                 std::uint32_t dimension = 10) {
  QueryBatch narrow, wide;
  const std::vector<std::int64_t> long_features(features.begin(), features.end());
  const auto a = narrow.checked(std::span<const std::int64_t>(offsets), std::span<const std::int32_t>(features),
                                std::span<const float>(values), dimension);
  const auto b = wide.checked(std::span<const std::int64_t>(offsets), std::span<const std::int64_t>(long_features),
                              std::span<const float>(values), dimension);
  CHECK(a.fault == b.fault && a.row == b.row && a.at == b.at);
  return a;
}

} // namespace

TEST(honest_rows_pass) {
  CHECK(checked({0, 2, 2, 3}, {0, 9, 4}, {1, 2, 3}).fault == RowFault::none);
  CHECK(checked({0}, {}, {}).fault == RowFault::none);
}

TEST(each_fault_is_named_with_its_row) {
  CHECK(checked({}, {}, {}).fault == RowFault::bad_offsets);
  CHECK(checked({-1, 2}, {0, 1}, {1, 1}).fault == RowFault::bad_offsets);
  CHECK(checked({0, 3}, {0, 1}, {1, 1}).fault == RowFault::bad_offsets);
  CHECK(checked({0, 2, 1}, {0, 1}, {1, 1}).fault == RowFault::bad_offsets);
  CHECK(checked({0, 2}, {0, 1, 2}, {1}).fault == RowFault::bad_offsets); // fewer values than ids
  const RowCheck outside = checked({0, 1, 2}, {3, 10}, {1, 1});
  CHECK(outside.fault == RowFault::out_of_range && outside.row == 1 && outside.at == 1);
  CHECK(checked({0, 1}, {-1}, {1}).fault == RowFault::out_of_range);
  CHECK(checked({0, 1}, {1}, {std::numeric_limits<float>::infinity()}).fault == RowFault::not_finite);
  CHECK(checked({0, 1}, {1}, {std::numeric_limits<float>::quiet_NaN()}).fault == RowFault::not_finite);
}

TEST(disorder_is_told_apart_from_faults) {
  CHECK(checked({0, 2}, {4, 1}, {1, 1}).fault == RowFault::not_canonical);
  CHECK(checked({0, 2}, {4, 4}, {1, 1}).fault == RowFault::not_canonical);
  CHECK(checked({0, 2, 3}, {4, 1, 99}, {1, 1, 1}).fault == RowFault::out_of_range); // the worse one wins
}
