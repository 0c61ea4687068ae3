// One block (a query and a chunk) in, the sums of the chunk's nodes out: the product of Algorithm 2, by any of the
// eight variants. A run is all blocks of one chunk that are evaluated together.
//
// A matcher finds the common rows, a kernel adds them up. The two meet in a list of matches, so that
// matchers know nothing of layouts and instruction sets, and kernels nothing of matchers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "beamwood/engine/score.hpp"
#include "beamwood/layout/forest.hpp"
#include "beamwood/match/binary.hpp"
#include "beamwood/match/dense.hpp"
#include "beamwood/match/hash.hpp"
#include "beamwood/match/march.hpp"
#include "beamwood/open/whole_queries.hpp"
#include "beamwood/open/work.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

struct Block {
  const Query* query;
  float* sums; // room for the chunk's width
};

// Scratch memory of one worker. Grows to what is needed and is kept from call to call.
class alignas(kApart) BlockRunner {
public:
  Work work;

  // Evaluates the blocks of one chunk. False: the model's arrays are damaged.
  bool run(const Forest& forest, const TreeLayer& layer, std::uint32_t parent, std::span<const Block> blocks,
           Matcher matcher, const Kernels& kernels) {
    Siblings siblings;
    if (!layer.shape.children(parent, siblings)) return false;
    if (forest.layout == Layout::cascade) return run_whole(forest, layer, parent, siblings.width, blocks, kernels);
    if (matcher == Matcher::dense) lookup_.prepare(forest.features);
    if (sums_.size() < (siblings.width <= kMaskWidth ? kMaskWidth : 65536u))
      sums_.resize(siblings.width <= kMaskWidth ? kMaskWidth : 65536u);
    work.blocks += blocks.size();
    return forest.layout == Layout::chunk ? run_chunk(layer, parent, siblings, blocks, matcher, kernels)
                                          : run_columns(layer, siblings, blocks, matcher);
  }

private:
  // A chunk whose rows are all features (whole_queries.hpp), as queries have them. False also when it is another.
  bool run_whole(const Forest& forest, const TreeLayer& layer, std::uint32_t parent, std::uint32_t width,
                 std::span<const Block> blocks, const Kernels& kernels) {
    CascadeChunk chunk;
    if (!layer.cascade.at(parent, chunk)) return false;
    const DenseRun run = whole_chunk(chunk, width, &layer != &forest.trees[0].layers.back(), forest.features);
    bool whole = run.count > 0;
    const std::size_t together = width <= kMaskWidth ? kTogether : 1;
    const std::size_t room = width <= kMaskWidth ? kMaskWidth : 65536;
    if (sums_.size() < together * room) sums_.resize(together * room);
    for (std::size_t at = 0; at < blocks.size() && whole; at += together) {
      const std::size_t count = std::min(together, blocks.size() - at);
      const float* values[kTogether];
      float* sums[kTogether];
      for (std::size_t i = 0; i < kTogether; ++i) { // the last ones may be the same query, whose sums nobody takes
        values[i] = blocks[at + std::min(i, count - 1)].query->value;
        sums[i] = sums_.data() + std::min(i, together - 1) * room;
      }
      whole = count == 1 ? kernels.add_run(run, width, chunk.code, values[0], false, sums[0])
                         : kernels.add_run_of_four(run, width, chunk.code, values, sums);
      for (std::size_t i = 0; i < count; ++i) std::copy_n(sums[i], width, blocks[at + i].sums);
    }
    work.blocks += blocks.size();
    count(blocks.size() * run.count, 4 * blocks.size() * run.count * (run.head + weight_words(chunk.code.kind, width)));
    return whole;
  }

  bool run_chunk(const TreeLayer& layer, std::uint32_t parent, const Siblings& siblings, std::span<const Block> blocks,
                 Matcher matcher, const Kernels& kernels) {
    Chunk chunk;
    if (!layer.chunks.at(parent, chunk)) return false;
    const auto record = [&](std::uint32_t row) { return chunk.offset[row]; };
    if (matcher == Matcher::dense && !lookup_.enter(chunk.support, record)) return false;
    bool sound = true;
    for (const Block& block : blocks) {
      const std::uint32_t found =
          matcher == Matcher::dense ? look_up(*block.query) : place(chunk, match(*block.query, chunk.support, matcher));
      const std::int64_t words = kernels.accumulate(chunk.words, chunk.word_count, siblings.width, false, {},
                                                    rows_.data(), found, sums_.data());
      if (words < 0) {
        sound = false;
        break;
      }
      std::copy_n(sums_.data(), siblings.width, block.sums);
      count(found, static_cast<std::uint64_t>(words) * 4 + std::uint64_t{found} * 8);
    }
    if (matcher == Matcher::dense) lookup_.leave(chunk.support);
    return sound;
  }

  // From places in the support to places of records, which are called for at once: they wait for memory together.
  std::uint32_t place(const Chunk& chunk, std::uint32_t found) {
    if (rows_.size() < found) rows_.resize(found);
    for (std::uint32_t i = 0; i < found; ++i) {
      rows_[i] = {chunk.offset[matches_[i].row], matches_[i].value};
      __builtin_prefetch(chunk.words + std::min<std::uint64_t>(rows_[i].offset, chunk.word_count));
    }
    return found;
  }

  // A dense lookup holds places of records themselves. Its chunk was entered for many blocks and is near.
  std::uint32_t look_up(const Query& query) {
    if (rows_.size() < query.count + 1u) rows_.resize(query.count + 1u);
    return lookup_.match(query, rows_.data());
  }

  // The vanilla product: each column on its own. With `dense` a column is entered once for all blocks.
  bool run_columns(const TreeLayer& layer, const Siblings& siblings, std::span<const Block> blocks, Matcher matcher) {
    for (std::uint32_t child = 0; child < siblings.width; ++child) {
      Column column;
      if (!layer.columns.at(siblings.begin + child, column)) return false;
      if (matcher == Matcher::dense && !lookup_.enter(column.support, std::identity{})) return false;
      for (const Block& block : blocks) {
        const std::uint32_t found = match(*block.query, column.support, matcher);
        float sum = 0.0f;
        for (std::uint32_t i = 0; i < found; ++i) sum += matches_[i].value * column.weight[matches_[i].row];
        block.sums[child] = sum;
        count(found, std::uint64_t{found} * 8);
      }
      if (matcher == Matcher::dense) lookup_.leave(column.support);
    }
    return true;
  }

  std::uint32_t match(const Query& query, const Support& support, Matcher matcher) {
    if (matches_.size() < query.count + 1u) matches_.resize(query.count + 1u);
    switch (matcher) {
    case Matcher::march: return match_march(query, support, matches_.data());
    case Matcher::binary: return match_binary(query, support, matches_.data());
    case Matcher::hash: return match_hash(query, support, matches_.data());
    case Matcher::dense: return lookup_.match(query, matches_.data());
    }
    return 0;
  }

  void count(std::uint64_t rows, std::uint64_t bytes) noexcept {
    work.rows += rows;
    work.bytes += bytes;
  }

  static constexpr std::size_t kTogether = 4; // queries

  std::vector<Match> matches_;
  std::vector<Placed> rows_;
  std::vector<float> sums_;
  DenseLookup lookup_;
};

} // namespace beamwood
