// The blocks of one layer in, their sums out: Algorithm 3. Blocks are sorted by chunk, so that a chunk enters the
// cache once for all its queries, and shared out over workers at chunk boundaries.
//
// The law: a block's sums depend only on its query and its chunk. Workers own ranges of chunks (each with its own
// dense lookup) and write to the places of their own blocks, so neither order nor threads can change a bit.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "beamwood/open/block.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

// A node in the beam of a query, about to be opened.
struct OpenNode {
  std::uint32_t node;
  std::uint32_t query;
  float score;
  std::uint32_t first_child, width;
  std::uint64_t sums_at; // where its children's sums go
};

// Stable sort of (chunk << 32 | place) keys by chunk: one counting pass for each 11 bits that chunk numbers need.
class ChunkSort {
public:
  void sort(std::vector<std::uint64_t>& keys, std::uint32_t chunks) {
    other_.resize(keys.size());
    for (unsigned shift = 32; shift < 64 && (static_cast<std::uint64_t>(chunks) << 32) >> shift != 0; shift += kBits) {
      std::fill(std::begin(count_), std::end(count_), 0u);
      for (const std::uint64_t key : keys) ++count_[(key >> shift) & kMask];
      std::size_t sum = 0;
      for (std::size_t& c : count_) sum += std::exchange(c, sum);
      for (const std::uint64_t key : keys) other_[count_[(key >> shift) & kMask]++] = key;
      keys.swap(other_);
    }
  }

private:
  static constexpr unsigned kBits = 11, kMask = (1u << kBits) - 1;
  std::size_t count_[1u << kBits];
  std::vector<std::uint64_t> other_;
};

class LayerEvaluator {
public:
  // Adds up the children of every open node. False: the model's arrays are damaged.
  bool evaluate(const Forest& forest, const TreeLayer& layer, std::span<const Query> queries,
                std::span<const OpenNode> open, std::span<float> sums, Matcher matcher, const Kernels& kernels,
                bool sort_blocks, const Workers& workers, std::vector<BlockRunner>& runners) {
    if (queries.size() == 1) { // online: nothing to sort, nothing to share out
      for (const OpenNode& node : open) {
        const Block block{&queries[node.query], sums.data() + node.sums_at};
        if (!runners[0].run(forest, layer, node.node, {&block, 1}, matcher, kernels)) return false;
      }
      return true;
    }
    order_.resize(open.size());
    for (std::size_t i = 0; i < open.size(); ++i) order_[i] = static_cast<std::uint64_t>(open[i].node) << 32 | i;
    if (sort_blocks) sort_.sort(order_, layer.shape.parents());
    cut(workers.threads);
    std::atomic<bool> sound{true};
    parallel_for(workers, pieces_.size() - 1, [&](std::size_t piece, unsigned worker) {
      std::vector<Block> run; // the blocks of one chunk
      for (std::size_t i = pieces_[piece]; i < pieces_[piece + 1] && sound;) {
        const std::uint64_t chunk = order_[i] >> 32;
        run.clear();
        for (; i < pieces_[piece + 1] && order_[i] >> 32 == chunk; ++i) {
          const OpenNode& node = open[static_cast<std::uint32_t>(order_[i])];
          run.push_back({&queries[node.query], sums.data() + node.sums_at});
        }
        if (!runners[worker].run(forest, layer, static_cast<std::uint32_t>(chunk), run, matcher, kernels))
          sound = false;
      }
    });
    return sound;
  }

private:
  // Cuts the sorted blocks into pieces of about the same size that end where a chunk ends.
  void cut(unsigned threads) {
    pieces_.assign(1, 0);
    constexpr std::size_t kMost = 4096; // Ctrl-C is heard between pieces
    const std::size_t size =
        std::min(kMost, threads == 1 ? order_.size() : order_.size() / (std::size_t{8} * threads) + 1);
    for (std::size_t at = size; at < order_.size(); at += size) {
      while (at < order_.size() && order_[at] >> 32 == order_[at - 1] >> 32) ++at;
      if (at < order_.size()) pieces_.push_back(at);
    }
    if (!order_.empty()) pieces_.push_back(order_.size());
  }

  ChunkSort sort_;
  std::vector<std::uint64_t> order_;
  std::vector<std::size_t> pieces_;
};

} // namespace beamwood
