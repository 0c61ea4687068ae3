// Plain random trees (plain.hpp) as the engine knows them: owned (its arrays, each a vector of exactly its size, so that
// a sanitizer sees the first step outside), and views of those (a Forest); and the plain search beside them.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "beamwood/engine/search.hpp"
#include "beamwood/layout/cascade_read.hpp"
#include "beamwood/layout/layer_build.hpp"
#include "beamwood/layout/node.hpp"
#include "check.hpp"
#include "plain.hpp"

namespace check {

using namespace beamwood;

// The columns of a layer as CSC arrays, the way they come from Python.
struct CscArrays {
  std::vector<std::int64_t> start{0};
  std::vector<std::int32_t> feature;
  std::vector<float> weight;
  std::vector<std::uint32_t> column_of;

  explicit CscArrays(const PlainLayer& layer) {
    for (const auto& column : layer.column) {
      for (const auto& [f, w] : column) {
        feature.push_back(static_cast<std::int32_t>(f));
        weight.push_back(w);
      }
      column_of.push_back(static_cast<std::uint32_t>(start.size() - 1));
      start.push_back(static_cast<std::int64_t>(feature.size()));
    }
  }
  ColumnSource view() const { return {start, feature, weight, column_of}; }
};

template <class T> void trim(std::vector<T>& array) { std::vector<T>(array.begin(), array.end()).swap(array); }

// The hash indices of the supports that `start` cuts out of `feature`.
inline std::vector<std::uint32_t> hash_indices(const std::vector<std::uint64_t>& start,
                                               const std::vector<std::uint32_t>& feature) {
  std::vector<std::uint32_t> index(index_begin(start.back(), start.size() - 1), 0);
  for (std::size_t n = 0; n + 1 < start.size(); ++n) {
    const std::uint64_t begin = index_begin(start[n], n), end = index_begin(start[n + 1], n + 1);
    fill_index(feature.data() + start[n], static_cast<std::uint32_t>(start[n + 1] - start[n]), index.data() + begin,
               end - begin);
  }
  return index;
}

struct OwnedLayer {
  std::uint32_t nodes = 0;
  std::vector<std::uint32_t> child_start, label, feature, offset, words, index, column_feature, column_index,
      cascade_words, root;
  std::vector<std::uint64_t> row_start, word_start, column_start, cascade_start;
  std::vector<float> bias, column_weight, scale;
  WeightKind kind = WeightKind::f32; // of the cascade
  std::size_t step = 0;              // in its bundle

  LayerShape shape() const { return {nodes, child_start, label, bias}; }
  ChunkWeights chunks() const { return {row_start, word_start, feature, offset, words, index}; }
  ChunkSource source(std::uint32_t features) const { return {chunks(), features}; }
  ColumnWeights columns() const { return {column_start, column_feature, column_weight, column_index}; }
  CascadeWeights cascade() const { return {cascade_start, cascade_words, root, kind, scale}; }
};

inline OwnedLayer owned_layer(const PlainLayer& plain, std::uint32_t features, unsigned threads = 1) {
  const Workers workers{threads};
  OwnedLayer own;
  own.nodes = static_cast<std::uint32_t>(plain.column.size());
  own.child_start = plain.child_start;
  own.bias = plain.bias;
  if (std::any_of(plain.label.begin(), plain.label.end(), [](std::uint32_t l) { return l != kNoLabel; }))
    own.label = plain.label;
  trim(own.child_start);
  const CscArrays csc(plain);
  const LayerShape shape = own.shape();
  const ColumnSource source = csc.view();
  const LayerBuilder builder(shape, source);
  LayerRows rows;
  CHECK(builder.measure(rows, workers));
  own.words.resize(rows.word_start.back() + kTailWords);
  CHECK(builder.fill(rows, own.words, workers));
  own.row_start = rows.row_start;
  own.word_start = rows.word_start;
  own.feature = rows.feature;
  own.offset.resize(rows.feature.size());
  rows.offsets(own.offset);
  own.index = hash_indices(own.row_start, own.feature);
  own.column_start.resize(own.nodes + std::size_t{1});
  CHECK(measure_columns(own.shape(), own.source(features), own.column_start, workers));
  own.column_feature.resize(own.column_start.back());
  own.column_weight.resize(own.column_start.back());
  CHECK(fill_columns(own.shape(), own.source(features), own.column_start, own.column_feature, own.column_weight,
                     workers));
  own.column_index = hash_indices(own.column_start, own.column_feature);
  return own;
}

// Builds a cascade tree from the bottom up, bundle by bundle. False: its chunks are damaged.
inline bool cascade_tree(std::vector<OwnedLayer>& tree, std::uint32_t features, unsigned count = 1) {
  std::vector<LayerShape> shapes;
  for (OwnedLayer& own : tree) shapes.push_back(own.shape());
  const std::vector<std::size_t> steps = bundled(shapes);
  LayerRows below, rows;
  for (std::size_t end = tree.size(); end > 0;) {
    const std::size_t first = end - 1 - steps[end - 1];
    BundleSource<ChunkSource> source;
    source.bundle.layers = end - first;
    for (std::size_t l = first; l < end; ++l) {
      tree[l].step = l - first;
      source.bundle.shape[l - first] = &shapes[l];
      source.layer[l - first] = tree[l].source(features);
      if (l > first) tree[l].cascade_words.clear(), tree[l].cascade_start.clear(), tree[l].scale.clear();
    }
    const LayerRows* const beneath = end == tree.size() ? nullptr : &below;
    if (beneath && beneath->row_start.size() != shapes[end - 1].nodes + std::size_t{1}) return false;
    OwnedLayer& own = tree[first];
    const LayerBuilder builder(source, beneath, own.kind);
    rows = {};
    if (!builder.measure(rows, Workers{count})) return false;
    own.cascade_words.assign(rows.word_start.back() + kTailWords, 7);
    trim(own.cascade_words);
    if (!builder.fill(rows, own.cascade_words, Workers{count})) return false;
    own.cascade_start.resize(rows.word_start.size());
    rows.chunk_starts(source.bundle, beneath, own.cascade_start);
    own.scale = rows.scale;
    below = std::move(rows);
    end = first;
  }
  tree[0].root.assign(features, kNoRow);
  below.each_offset(0, [&](std::uint64_t row, std::uint32_t at) { tree[0].root[below.feature[row]] = at; });
  return true;
}

// The chunks of a cascade tree, found again from its cascade only. False: they are damaged.
inline bool chunks_again(const Tree& tree, std::vector<OwnedLayer>& out, unsigned count = 1) {
  CascadeReader reader(tree);
  out.clear();
  for (const TreeLayer& layer : tree.layers) {
    if (!reader.next(Workers{count})) return false;
    const CascadeSource source = reader.source();
    const LayerBuilder builder(layer.shape, source);
    OwnedLayer& own = out.emplace_back();
    LayerRows rows;
    if (!builder.measure(rows, Workers{count})) return false;
    own.words.resize(rows.word_start.back() + kTailWords);
    if (!builder.fill(rows, own.words, Workers{count})) return false;
    own.row_start = rows.row_start;
    own.word_start = rows.word_start;
    own.feature = rows.feature;
    own.offset.resize(rows.feature.size());
    rows.offsets(own.offset);
  }
  return true;
}

struct OwnedForest {
  std::uint32_t features = 0, labels = 0;
  Activation activation;
  std::vector<std::vector<OwnedLayer>> trees;
  std::vector<std::vector<std::uint32_t>> leaf_of_label; // per tree

  explicit OwnedForest(const PlainForest& plain, WeightKind kind = WeightKind::f32)
      : features(plain.features), labels(plain.labels), activation(plain.activation) {
    for (const PlainTree& tree : plain.trees) {
      auto& layers = trees.emplace_back();
      for (const PlainLayer& layer : tree) layers.push_back(owned_layer(layer, features));
      for (OwnedLayer& layer : layers) layer.kind = kind;
      CHECK(cascade_tree(layers, features));
      auto& leaves = leaf_of_label.emplace_back(labels, 0u);
      std::uint32_t node = 0;
      for (const PlainLayer& layer : tree)
        for (const std::uint32_t label : layer.label) {
          if (label != kNoLabel) leaves[label] = node;
          ++node;
        }
    }
  }

  Forest view(Layout layout) const {
    Forest forest{features, labels, activation, layout, {}};
    for (std::size_t t = 0; t < trees.size(); ++t) {
      Tree& tree = forest.trees.emplace_back();
      tree.leaf_of_label = leaf_of_label[t];
      for (const OwnedLayer& layer : trees[t])
        tree.layers.push_back({layer.shape(), layer.chunks(), layer.columns(), layer.cascade(), layer.step});
    }
    return forest;
  }
};

// Queries with rising ids, held the way a caller holds them.
struct Rows {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> features;
  std::vector<float> values;
  QueryBatch batch;

  // Features from `dense` on are in nearly every query.
  Rows(Random& random, std::uint32_t count, std::uint32_t dimension, double density, std::uint32_t dense = ~0u) {
    for (std::uint32_t q = 0; q < count; ++q) {
      for (std::uint32_t f = 0; f < dimension; ++f)
        if (random.chance(f >= dense ? 0.998 : density)) {
          features.push_back(static_cast<std::int32_t>(f));
          values.push_back(random.number());
        }
      offsets.push_back(static_cast<std::int64_t>(features.size()));
    }
    trim(features);
    trim(values);
    const RowCheck found =
        batch.checked(std::span<const std::int64_t>(offsets), std::span<const std::int32_t>(features),
                      std::span<const float>(values), dimension);
    CHECK(found.fault == RowFault::none);
  }
  std::span<const Query> queries() const { return batch.queries(); }
};

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

struct Answers {
  bool sound = false;
  std::vector<std::int64_t> labels;
  std::vector<float> scores;

  Answers(std::size_t queries, std::uint32_t k) : labels(queries * k, -7), scores(queries * k, -7.0f) {}

  bool operator==(const Answers& other) const {
    return sound == other.sound && labels == other.labels && same_bits(scores, other.scores);
  }
};

inline Answers search(const Forest& forest, std::span<const Query> queries, const SearchOptions& options,
                      unsigned threads = 1) {
  Answers answers(queries.size(), options.k);
  Search search;
  answers.sound = search.run(forest, queries, options, Workers{threads}, answers.labels.data(), answers.scores.data());
  return answers;
}

inline std::vector<Isa> isas_here() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon})
    if (kernels_for(isa)) found.push_back(isa);
  return found;
}

inline constexpr Matcher kMatchers[] = {Matcher::march, Matcher::binary, Matcher::hash, Matcher::dense};
inline constexpr Layout kLayouts[] = {Layout::chunk, Layout::column, Layout::cascade};

// --- the plain search: Algorithm 1 with sorts and maps; it shares with the engine only the scalar activations --------

struct Candidate {
  std::uint32_t id;
  float score;
};

inline bool ranks_before(const Candidate& a, const Candidate& b) {
  const bool a_nan = std::isnan(a.score), b_nan = std::isnan(b.score);
  if (a_nan != b_nan) return b_nan;
  if (!a_nan && a.score != b.score) return a.score > b.score;
  return a.id < b.id;
}

inline float plain_sum(const Query& query, const std::map<std::uint32_t, float>& column) {
  float z = 0.0f;
  for (std::uint32_t i = 0; i < query.count; ++i)
    if (const auto found = column.find(query.feature[i]); found != column.end()) z += query.value[i] * found->second;
  return z;
}

// A node's score, given the sum for it and its parent's number and score.
inline float plain_score(const PlainForest& forest, const PlainLayer& layer, std::uint32_t parent, float above,
                         std::uint32_t node, float sum) {
  const float* bias = layer.bias.empty() ? nullptr : &layer.bias[node];
  const std::uint32_t width = layer.child_start[parent + 1] - layer.child_start[parent];
  return combine(forest.activation.path, forest.activation.handed_down(above, bias, width),
                 activate(forest.activation, bias ? sum + *bias : sum));
}

// Every label that a tree reaches; `beam` nodes a layer are opened.
inline std::vector<Candidate> plain_reached(const PlainForest& forest, const PlainTree& tree, const Query& query,
                                            std::size_t beam) {
  std::vector<Candidate> open{{0, forest.activation.root_score()}}, reached;
  for (const PlainLayer& layer : tree) {
    std::vector<Candidate> children;
    for (const Candidate& parent : open)
      for (std::uint32_t node = layer.child_start[parent.id]; node < layer.child_start[parent.id + 1]; ++node) {
        const float score =
            plain_score(forest, layer, parent.id, parent.score, node, plain_sum(query, layer.column[node]));
        if (layer.label[node] == kNoLabel) children.push_back({node, score});
        else reached.push_back({layer.label[node], leaf_score(forest.activation.path, score)});
      }
    std::sort(children.begin(), children.end(), ranks_before);
    if (children.size() > beam) children.resize(beam);
    open = std::move(children);
  }
  return reached;
}

inline Answers plain_search(const PlainForest& forest, std::span<const Query> queries, std::uint32_t k,
                            std::size_t beam) {
  Answers answers(queries.size(), k);
  answers.sound = true;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    std::vector<Candidate> all;
    if (forest.trees.size() == 1) {
      all = plain_reached(forest, forest.trees[0], queries[q], beam);
    } else {
      std::map<std::uint32_t, float> sums;
      for (const PlainTree& tree : forest.trees)
        for (const Candidate& c : plain_reached(forest, tree, queries[q], beam)) sums[c.id] += c.score;
      for (const auto& [label, sum] : sums) all.push_back({label, sum / static_cast<float>(forest.trees.size())});
    }
    std::sort(all.begin(), all.end(), ranks_before);
    for (std::uint32_t i = 0; i < k; ++i) {
      answers.labels[q * k + i] = i < all.size() ? std::int64_t{all[i].id} : -1;
      answers.scores[q * k + i] = i < all.size() ? all[i].score : -std::numeric_limits<float>::infinity();
    }
  }
  return answers;
}

} // namespace check
