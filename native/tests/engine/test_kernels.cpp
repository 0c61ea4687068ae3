// score.hpp and native/src: every instruction set gives the bits of the plain sum, at every width.
#include "forests.hpp"

using namespace check;

namespace {

struct OneChunk {
  PlainLayer plain;
  OwnedLayer own;
  Chunk chunk;

  OneChunk(Random& random, std::uint32_t width, std::uint32_t features, double density) {
    plain.child_start = {0, width};
    plain.label.assign(width, 0);
    for (std::uint32_t node = 0; node < width; ++node) {
      auto& column = plain.column.emplace_back();
      for (std::uint32_t f = 0; f < features; ++f)
        if (random.chance(density)) {
          // weights of all sizes: sums that round, cancel, overflow and go subnormal
          const float scale = random.chance(0.1) ? 1e30f : random.chance(0.1) ? 1e-38f : 1.0f;
          column[f] = random.number() * scale;
        }
    }
    own = owned_layer(plain, features);
    CHECK(own.chunks().at(0, chunk));
  }
};

std::vector<Placed> placed(const Chunk& chunk, const std::vector<Match>& matches, std::size_t found) {
  std::vector<Placed> rows;
  for (std::size_t i = 0; i < found; ++i) rows.push_back({chunk.offset[matches[i].row], matches[i].value});
  return rows;
}

std::int64_t accumulate(const Kernels& kernels, const Chunk& chunk, std::uint32_t width,
                        const std::vector<Placed>& rows, std::vector<float>& z) {
  z.assign(width <= kMaskWidth ? kMaskWidth : 65536, -7.0f);
  return kernels.accumulate(chunk.words, chunk.word_count, width, false, {}, rows.data(),
                            static_cast<std::uint32_t>(rows.size()), z.data());
}

// Every sibling's sum, through the kernel of an instruction set.
std::vector<float> sums(const Kernels& kernels, const OneChunk& one, std::uint32_t width,
                        const std::vector<Match>& matches) {
  std::vector<float> z;
  CHECK(accumulate(kernels, one.chunk, width, placed(one.chunk, matches, matches.size()), z) >= 0);
  z.resize(width);
  return z;
}

} // namespace

TEST(every_instruction_set_gives_the_plain_sum) {
  Random random;
  const auto isas = isas_here();
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t width = round < 132 ? 1 + static_cast<std::uint32_t>(round) % 66 : random.between(1, 300);
    const OneChunk one(random, width, 24, random.chance(0.2) ? 1.0 : 0.3);
    const Rows rows(random, 3, 24, 0.6);
    for (const Query& query : rows.queries()) {
      std::vector<Match> matches(query.count + std::size_t{1});
      matches.resize(match_march(query, one.chunk.support, matches.data()));
      for (const Isa isa : isas) {
        const auto z = sums(*kernels_for(isa), one, width, matches);
        for (std::uint32_t c = 0; c < width; ++c)
          CHECK(key_of(z[c], c) == key_of(plain_sum(query, one.plain.column[c]), c));
      }
    }
  }
}

TEST(runs_of_dense_rows_give_the_bits_of_single_rows) {
  Random random;
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t width = round < 132 ? 1 + static_cast<std::uint32_t>(round) % 66 : random.between(1, 300);
    const std::uint32_t count = random.between(1, 40), alone = random.between(0, 3);
    const OneChunk one(random, width, alone + count, 1.0);
    std::vector<Placed> rows;
    std::vector<float> values;
    for (std::uint32_t i = 0; i < alone + count; ++i) {
      values.push_back(random.chance(0.1) ? 0.0f : random.number());
      rows.push_back({one.chunk.offset[i], values[i]});
    }
    const RecordForm form{width, false, {}};
    const DenseRun run{one.chunk.words + one.chunk.offset[alone], static_cast<std::uint32_t>(form.words(width, 0)),
                       count, static_cast<std::uint32_t>(form.weights_at(width, 0))};
    for (const Isa isa : isas_here()) {
      const Kernels& kernels = *kernels_for(isa);
      std::vector<float> expected, z;
      CHECK(accumulate(kernels, one.chunk, width, rows, expected) >= 0);
      rows.resize(alone);
      CHECK(accumulate(kernels, one.chunk, width, rows, z) >= 0);
      CHECK(kernels.add_run(run, width, {}, values.data() + alone, alone > 0, z.data()));
      if (alone == 0 && width <= kMaskWidth) {
        const std::vector<float> zeros(count, 0.0f);
        std::vector<float> four(4 * kMaskWidth);
        const float* const each[4] = {zeros.data(), values.data(), zeros.data(), values.data()};
        float* const to[4] = {&four[0], &four[kMaskWidth], &four[2 * kMaskWidth], &four[3 * kMaskWidth]};
        CHECK(kernels.add_run_of_four(run, width, {}, each, to));
        for (std::uint32_t c = 0; c < width; ++c)
          CHECK(four[c] == 0.0f && key_of(to[1][c], c) == key_of(z[c], c) && key_of(to[3][c], c) == key_of(z[c], c));
      }
      for (std::uint32_t i = alone; i < alone + count; ++i) rows.push_back({one.chunk.offset[i], values[i]});
      for (std::uint32_t c = 0; c < width; ++c) CHECK(key_of(z[c], c) == key_of(expected[c], c));
    }
  }
}

TEST(runs_that_lack_a_weight_are_noticed) {
  Random random;
  for (const std::uint32_t width : {1u, 7u, 8u, 15u, 16u, 31u, 32u, 33u, 64u, 100u}) {
    OneChunk one(random, width, 20, 1.0);
    const RecordForm form{width, false, {}};
    const auto stride = static_cast<std::uint32_t>(form.words(width, 0));
    const DenseRun run{one.chunk.words, stride, 20, static_cast<std::uint32_t>(form.weights_at(width, 0))};
    const std::vector<float> values(20, 1.0f);
    std::vector<float> z(512);
    for (const Isa isa : isas_here()) {
      CHECK(kernels_for(isa)->add_run(run, width, {}, values.data(), false, z.data()));
      const std::uint64_t at = random.below(20) * stride;
      one.own.words[at] ^= 1;
      CHECK(!kernels_for(isa)->add_run(run, width, {}, values.data(), false, z.data()));
      one.own.words[at] ^= 1;
    }
  }
}

TEST(every_instruction_set_ranks_scores_by_the_one_order) {
  Random random;
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t width = 1 + static_cast<std::uint32_t>(round) % kMaskWidth;
    float scores[kMaskWidth];
    for (float& score : scores) {
      const float few = static_cast<float>(random.between(0, 4)) - 2.0f; // many are equal
      score = random.chance(0.5)    ? few + 0.0f
              : random.chance(0.05) ? std::numeric_limits<float>::quiet_NaN()
              : random.chance(0.05) ? -std::numeric_limits<float>::infinity()
                                    : random.number() + 0.0f;
    }
    std::vector<Key> expected;
    for (std::uint32_t i = 0; i < width; ++i) expected.push_back(key_of(scores[i], i));
    std::sort(expected.begin(), expected.end());
    for (const Isa isa : isas_here()) {
      std::uint8_t order[kMaskWidth];
      kernels_for(isa)->rank(scores, width, order);
      for (std::uint32_t i = 0; i < width; ++i) CHECK(order[i] == id_of(expected[i]));
    }
  }
}

TEST(the_widest_chunk_sums_like_any_other) {
  Random random;
  const OneChunk one(random, kMaxWidth, 4, 0.3);
  const Rows rows(random, 2, 4, 0.9);
  for (const Query& query : rows.queries()) {
    std::vector<Match> matches(query.count + std::size_t{1});
    matches.resize(match_march(query, one.chunk.support, matches.data()));
    for (const Isa isa : isas_here()) {
      const auto z = sums(*kernels_for(isa), one, kMaxWidth, matches);
      bool same = true;
      for (std::uint32_t c = 0; c < kMaxWidth; ++c)
        same &= key_of(z[c], c) == key_of(plain_sum(query, one.plain.column[c]), c);
      CHECK(same);
    }
  }
}

TEST(damaged_records_are_reported_or_harmless) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t width = random.between(1, 70);
    OneChunk one(random, width, 16, 0.5);
    if (one.own.feature.empty()) continue;
    for (std::uint32_t i = random.between(1, 4); i > 0; --i) {
      if (random.chance(0.5))
        one.own.offset[random.below(one.own.offset.size())] =
            static_cast<std::uint32_t>(random.next() >> random.below(64));
      else one.own.words[random.below(one.own.words.size() - kTailWords)] = static_cast<std::uint32_t>(random.next());
    }
    const Rows rows(random, 1, 16, 0.8);
    const Query& query = rows.queries()[0];
    std::vector<Match> matches(query.count + std::size_t{1});
    const std::uint32_t found = match_march(query, one.chunk.support, matches.data());
    bool first = true, sound = false;
    for (const Isa isa : isas_here()) {
      std::vector<float> z;
      const bool now = accumulate(*kernels_for(isa), one.chunk, width, placed(one.chunk, matches, found), z) >= 0;
      CHECK(first || now == sound); // the verdict is the same on every machine
      first = false;
      sound = now;
    }
  }
}
