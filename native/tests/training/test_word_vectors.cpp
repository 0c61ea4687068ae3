// word_vectors.hpp: rows are plain sums; columns' products and eigenvectors are what they say, for any number of threads.
#include "beamwood/training/word_vectors.hpp"
#include "problems.hpp"

using namespace check;
using namespace beamwood;

namespace {

std::vector<float> random_table(Random& random, std::size_t size) {
  std::vector<float> values(size);
  for (float& value : values) value = random.number();
  return values;
}

} // namespace

TEST(row_vectors_are_plain_sums_of_words_vectors) {
  Random random;
  const std::vector<std::int64_t> offset{0, 2, 2, 3};
  const std::vector<std::int32_t> feature{0, 3, 1};
  const std::vector<float> value{0.5f, -2.0f, 1.0f};
  const std::vector<float> table = random_table(random, 4 * 3);
  for (const unsigned threads : {1u, 3u}) {
    std::vector<float> out(3 * 3, -1.0f);
    row_vectors({offset, feature, value, 4}, {table, 3}, {out, 3}, Workers{threads});
    for (std::size_t d = 0; d < 3; ++d) {
      float sum = 0.0f;
      sum += 0.5f * table[d];
      sum += -2.0f * table[9 + d];
      CHECK(out[d] == sum);
      CHECK(out[3 + d] == 0.0f);
      CHECK(out[6 + d] == table[3 + d]);
    }
  }
}

TEST(eigenvectors_of_the_gram_matrix_turn_a_table_to_columns_without_products) {
  Random random;
  const std::size_t rows = 700, width = 9;
  const std::vector<float> table = random_table(random, rows * width);
  std::vector<double> one(width * width), more(width * width), values(width), vectors(width * width);
  gram({table, width}, one, Workers{1});
  gram({table, width}, more, Workers{4});
  CHECK(one == more);
  eigen(one, width, values, vectors);
  CHECK(std::ranges::is_sorted(values, std::greater<>()));
  std::vector<float> out(rows * width);
  turned({table, width}, vectors, {out, width}, Workers{2});
  gram({out, width}, more, Workers{1});
  for (std::size_t i = 0; i < width; ++i)
    for (std::size_t j = 0; j < width; ++j) CHECK(std::fabs(more[i * width + j] - (i == j ? values[i] : 0.0)) < 1e-3);
}
