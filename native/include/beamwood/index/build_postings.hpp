// Sparse rows, one per label, in; the inverted lists of all features out (postings.hpp).
//
// A counting sort by feature, then each list is written by itself: parallel over rows, then over features, the same words
// for any number of threads. Weights of zero are left out: they change no sum.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "beamwood/index/postings.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

struct BuiltPostings {
  std::vector<std::uint64_t> start;
  std::vector<std::uint16_t> words;
  std::vector<float> top, scale;
  std::vector<std::uint32_t> dense; // as postings.hpp has them; empty where no feature is
  std::vector<std::uint8_t> codes;
};

class PostingsBuilder {
public:
  // Rows have rising features below `features` and finite weights: the caller has checked them. kept: of bytes, the
  // scales of lists that were there before, so that their weights keep their codes; 0 for a list that is to choose its
  // own. Larger weights become the largest that the scale reaches.
  PostingsBuilder(std::span<const std::int64_t> offsets, std::span<const std::int32_t> features,
                  std::span<const float> weights, std::uint32_t dimension, WeightKind kind,
                  std::span<const float> kept = {})
      : offsets_(offsets), row_features_(features), row_weights_(weights), dimension_(dimension),
        labels_(static_cast<std::uint32_t>(offsets.size() - 1)), kind_(kind), kept_(kept) {}

  BuiltPostings build(const Workers& workers) {
    turn(workers);
    BuiltPostings out;
    out.start.assign(static_cast<std::size_t>(dimension_) + 1, 0);
    out.top.resize(dimension_);
    if (kind_ == WeightKind::u8) out.scale.resize(dimension_);
    each_feature(workers, [&](std::uint32_t f) {
      if (kind_ == WeightKind::u8) out.scale[f] = scale_of(f);
      out.start[f + 1] = list_words(f);
    });
    for (std::uint32_t f = 0; f < dimension_; ++f) out.start[f + 1] += out.start[f];
    out.words.assign(out.start.back(), 0);
    each_feature(workers, [&](std::uint32_t f) {
      out.top[f] = write_list(f, out.scale.empty() ? 1.0f : out.scale[f], out.words.data() + out.start[f]);
    });
    write_codes(workers, out);
    return out;
  }

private:
  static constexpr std::size_t kFeaturesPerTask = 512;
  static constexpr std::uint32_t kFewestDense = 1024; // labels: with fewer there is nothing to save

  template <class Function> void each_feature(const Workers& workers, Function&& function) const {
    parallel_for(workers, (dimension_ + kFeaturesPerTask - 1) / kFeaturesPerTask, [&](std::size_t task, unsigned) {
      const std::size_t end = std::min<std::size_t>(dimension_, (task + 1) * kFeaturesPerTask);
      for (std::size_t f = task * kFeaturesPerTask; f < end; ++f) function(static_cast<std::uint32_t>(f));
    });
  }

  // Features that many labels have, and no negative weight, once more: a byte for each label.
  void write_codes(const Workers& workers, BuiltPostings& out) const {
    if (labels_ < kFewestDense) return;
    std::uint32_t number = 0;
    out.dense.assign(dimension_, 0);
    for (std::uint32_t f = 0; f < dimension_; ++f)
      if (list_start_[f + 1] - list_start_[f] >= labels_ / kDense && out.top[f] > 0 && std::isfinite(out.top[f]))
        out.dense[f] = ++number;
    if (number == 0) return out.dense.clear();
    Postings index;
    index.features = dimension_, index.labels = labels_, index.kind = kind_;
    index.start = out.start, index.words = out.words, index.top = out.top, index.scale = out.scale;
    out.codes.assign(number * index.stride(), 0);
    each_feature(workers, [&](std::uint32_t f) {
      if (out.dense[f] == 0) return;
      std::uint8_t* const codes = out.codes.data() + (out.dense[f] - 1) * index.stride();
      const double steps = 255.0 / static_cast<double>(out.top[f]);
      PostingList list;
      open_list(index, f, 1.0f, list);
      for (std::uint32_t tile = 0; list.seek(index, tile) && !list.over; tile = list.piece.tile + 1) {
        list.piece.each([&](std::uint32_t place, std::uint32_t i) {
          const double code = std::ceil(static_cast<double>(weight_of(kind_, list, i)) * steps);
          codes[list.piece.tile * kTile + place] = static_cast<std::uint8_t>(std::clamp(code, 1.0, 255.0));
        });
      }
    });
  }

  // Fills list_start_, label_ and weight_: for each feature its labels, rising, and their weights.
  void turn(const Workers& workers) {
    const std::size_t parts = std::clamp<std::size_t>(workers.threads, 1, 8);
    const auto first = [&](std::size_t part) { return static_cast<std::uint32_t>(labels_ * part / parts); };
    std::vector<std::vector<std::uint64_t>> place(parts); // of each part and feature
    parallel_for(workers, parts, [&](std::size_t part, unsigned) {
      place[part].assign(dimension_, 0);
      each_weight(first(part), first(part + 1), [&](std::uint32_t, std::uint32_t f, float) { ++place[part][f]; });
    });
    list_start_.assign(static_cast<std::size_t>(dimension_) + 1, 0);
    std::uint64_t sum = 0;
    for (std::uint32_t f = 0; f < dimension_; ++f) {
      list_start_[f] = sum;
      for (auto& counts : place) sum += std::exchange(counts[f], sum);
    }
    list_start_[dimension_] = sum;
    label_.resize(sum), weight_.resize(sum);
    parallel_for(workers, parts, [&](std::size_t part, unsigned) {
      each_weight(first(part), first(part + 1), [&](std::uint32_t label, std::uint32_t f, float w) {
        const std::uint64_t at = place[part][f]++;
        label_[at] = label, weight_[at] = w;
      });
    });
  }

  template <class Visit> void each_weight(std::uint32_t from, std::uint32_t to, Visit&& visit) const {
    for (std::uint32_t label = from; label < to; ++label)
      for (auto i = static_cast<std::size_t>(offsets_[label]); i < static_cast<std::size_t>(offsets_[label + 1]); ++i)
        if (row_weights_[i] != 0) visit(label, static_cast<std::uint32_t>(row_features_[i]), row_weights_[i]);
  }

  std::uint32_t width(std::uint32_t tile) const noexcept { return std::min(kTile, labels_ - tile * kTile); }

  // Calls visit(tile, begin, end) for each run of a feature's labels in one tile.
  template <class Visit> void each_piece(std::uint32_t f, Visit&& visit) const {
    for (std::uint64_t at = list_start_[f]; at < list_start_[f + 1];) {
      const std::uint32_t tile = label_[at] / kTile;
      std::uint64_t end = at + 1;
      while (end < list_start_[f + 1] && label_[end] / kTile == tile) ++end;
      visit(tile, at, end);
      at = end;
    }
  }

  std::uint64_t list_words(std::uint32_t f) const {
    std::uint64_t sum = 0;
    each_piece(f, [&](std::uint32_t tile, std::uint64_t at, std::uint64_t end) {
      const auto count = static_cast<std::uint32_t>(end - at);
      sum += 2 + place_words(width(tile), count) + posting_weight_words(kind_, count);
    });
    return sum;
  }

  // Bytes without a sign reach from 1 to 255 steps, those with one from -127 to 127.
  float scale_of(std::uint32_t f) const {
    if (!kept_.empty() && kept_[f] != 0) return kept_[f];
    float largest = 0;
    bool negative = false;
    for (std::uint64_t i = list_start_[f]; i < list_start_[f + 1]; ++i)
      largest = std::max(largest, std::fabs(weight_[i])), negative |= weight_[i] < 0;
    float step = std::max(largest / (negative ? 127.0f : 255.0f), std::bit_cast<float>(1u));
    while (std::isinf((negative ? 127.0f : 255.0f) * step)) step = std::nextafter(step, 0.0f);
    return negative ? -step : step;
  }

  // The largest weight as it is read again, with the sign of the smallest one: see Postings::top.
  float write_list(std::uint32_t f, float scale, std::uint16_t* out) const {
    float most = 0;
    bool negative = false;
    each_piece(f, [&](std::uint32_t tile, std::uint64_t at, std::uint64_t end) {
      const auto count = static_cast<std::uint32_t>(end - at);
      const std::uint64_t places = place_words(width(tile), count);
      out[0] = static_cast<std::uint16_t>(tile), out[1] = static_cast<std::uint16_t>(count - 1);
      write_places(tile, at, end, places < count, out + 2);
      out += 2 + places;
      for (std::uint64_t i = at; i < end; ++i) {
        const float w = write_weight(out, static_cast<std::uint32_t>(i - at), weight_[i], scale);
        most = std::max(most, w), negative |= w < 0;
      }
      out += posting_weight_words(kind_, count);
    });
    return negative ? -most : most;
  }

  void write_places(std::uint32_t tile, std::uint64_t at, std::uint64_t end, bool bitmap, std::uint16_t* out) const {
    if (!bitmap) {
      for (std::uint64_t i = at; i < end; ++i) out[i - at] = static_cast<std::uint16_t>(label_[i]);
      return;
    }
    const std::uint32_t groups = groups_of(width(tile));
    std::uint16_t* const bits = out + groups;
    for (std::uint64_t i = at; i < end; ++i) {
      const std::uint32_t place = label_[i] % kTile;
      bits[place / 16] = static_cast<std::uint16_t>(bits[place / 16] | 1u << (place % 16));
    }
    std::uint32_t before = 0;
    for (std::uint32_t g = 0; g < groups; ++g) {
      out[g] = static_cast<std::uint16_t>(before);
      for (std::uint32_t w = g * (kGroup / 16); w < (g + 1) * (kGroup / 16); ++w)
        before += static_cast<std::uint32_t>(std::popcount(bits[w]));
    }
  }

  // Writes weight i of a piece whose words were zeros before; what it is read as.
  float write_weight(std::uint16_t* weights, std::uint32_t i, float w, float scale) const {
    switch (kind_) {
    case WeightKind::f32: std::memcpy(weights + 2 * static_cast<std::size_t>(i), &w, sizeof w); return w;
    case WeightKind::f16: weights[i] = half_from_float(w); return half_to_float(weights[i]);
    case WeightKind::u8: break;
    }
    const float steps = std::nearbyint(w / std::fabs(scale));
    const int code = static_cast<int>(scale < 0 ? std::clamp(steps, -127.0f, 127.0f) : std::clamp(steps, 1.0f, 255.0f));
    weights[i / 2] = static_cast<std::uint16_t>(weights[i / 2] | static_cast<unsigned>(static_cast<std::uint8_t>(code))
                                                                     << (8 * (i % 2)));
    return weight_at<WeightKind::u8>(weights, i, scale);
  }

  std::span<const std::int64_t> offsets_;
  std::span<const std::int32_t> row_features_;
  std::span<const float> row_weights_;
  std::uint32_t dimension_, labels_;
  WeightKind kind_;
  std::span<const float> kept_;
  std::vector<std::uint64_t> list_start_;
  std::vector<std::uint32_t> label_;
  std::vector<float> weight_;
};

} // namespace beamwood
