// Answers as lines: JSON that holds any string, cells in quotes where they must be, a line for rows without an answer.
#include <string>
#include <vector>

#include "beamwood/wire/answers.hpp"
#include "check.hpp"

namespace {

using namespace beamwood;

struct Table {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> offsets{0};

  explicit Table(const std::vector<std::string>& strings) {
    for (const std::string& text : strings) {
      bytes.insert(bytes.end(), text.begin(), text.end());
      offsets.push_back(bytes.size());
    }
  }
  StringList list() const { return {bytes, offsets}; }
};

std::string joined(const Answers& all, char between, unsigned threads = 1) {
  std::string out;
  for (const std::string& piece : answer_lines(all, between, Workers{threads})) out += piece;
  return out;
}

const std::vector<std::int64_t> labels{1, 0, -1, -1};
const std::vector<float> scores{0.5f, 0.25f, 0.0f, 0.0f};

} // namespace

TEST(answers_as_json_lines) {
  const Table keys({"a\"b", "c"}), ids({"x\ny", "7"});
  const StringList key_list = keys.list(), id_list = ids.list();
  Answers all{labels.data(), scores.data(), 2, 2, 40, &key_list, nullptr, &id_list, true};
  CLAIM(joined(all, '\0') == "{\"row\":40,\"id\":\"x\\u000ay\",\"keys\":[\"c\",\"a\\\"b\"],\"scores\":[0.5,0.25]}\n"
                             "{\"row\":41,\"id\":\"7\",\"keys\":[],\"scores\":[]}\n",
        "keys and ids in quotes");
  all.keys = nullptr, all.ids = nullptr, all.names = &key_list;
  CLAIM(joined(all, '\0') == "{\"row\":40,\"keys\":[\"1\",\"0\"],\"names\":[\"c\",\"a\\\"b\"],\"scores\":[0.5,0.25]}\n"
                             "{\"row\":41,\"keys\":[],\"names\":[],\"scores\":[]}\n",
        "numbers for keys");
  const std::vector<float> probable{0.75f, 0.5f, 0.0f, 0.0f};
  all.probabilities = probable.data(), all.names = nullptr;
  CLAIM(joined(all, '\0') == "{\"row\":40,\"keys\":[\"1\",\"0\"],\"scores\":[0.5,0.25],\"probabilities\":[0.75,0.5]}\n"
                             "{\"row\":41,\"keys\":[],\"scores\":[],\"probabilities\":[]}\n",
        "probabilities behind scores");
  CLAIM(joined(all, ',') == "40,1,1,0.5,0.75\n40,2,0,0.25,0.5\n41,,,,\n", "a cell for each probability");
}

TEST(answers_as_cells) {
  const Table keys({"a\"b", "c,d"});
  const StringList key_list = keys.list();
  const Answers all{labels.data(), scores.data(), 2, 2, 0, &key_list, nullptr, nullptr, false};
  CLAIM(joined(all, ',') == "0,1,\"c,d\",0.5\n0,2,\"a\"\"b\",0.25\n1,,,\n", "quotes where they must be");
}

TEST(answers_do_not_depend_on_threads) {
  std::vector<std::int64_t> many(3000);
  std::vector<float> values(3000);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<std::int64_t>(i % 7), values[i] = 1.0f / float(i + 1);
  const Answers all{many.data(), values.data(), 1000, 3, 0, nullptr, nullptr, nullptr, false};
  CLAIM(joined(all, '\0') == joined(all, '\0', 4), "the same bytes");
}

TEST(answers_of_a_damaged_model_end_in_an_error) {
  const Table keys({"only one"});
  const StringList key_list = keys.list();
  const Answers all{labels.data(), scores.data(), 2, 2, 0, &key_list, nullptr, nullptr, false};
  bool thrown = false;
  try {
    joined(all, '\0');
  } catch (const Damaged&) {
    thrown = true;
  }
  CLAIM(thrown, "a label without a key");
}
