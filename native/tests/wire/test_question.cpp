// Plain questions are read, everything else is left to the full reader; prices follow the median.
#include <string>

#include "beamwood/wire/prices.hpp"
#include "beamwood/wire/question.hpp"
#include "check.hpp"

namespace {

using namespace beamwood;

const QuestionReader reader(10, 10, 1000, 1000);

void claim(bool holds, const std::string& what) { check::expect(holds, what.c_str(), __FILE__, __LINE__); }

} // namespace

TEST(plain_questions_are_read) {
  const auto asked = reader.read(R"( {"k": 3, "text": "a\u00fc\ud83c\udf32\"\n", "beam":1000, "model":"m"} )");
  claim(asked && asked->text == "a\xc3\xbc\xf0\x9f\x8c\xb2\"\n" && asked->model == "m", "strings");
  claim(asked && asked->k == 3 && asked->beam == 1000, "numbers");
  const auto queried = reader.read_query("q=a%C3%BC+b&k=3");
  claim(queried && queried->text == "a\xc3\xbc b" && queried->k == 3 && queried->beam == 10, "a query string");
}

TEST(what_is_not_plain_is_not_read) {
  for (const char* body : {"",
                           "{",
                           "{}",
                           "[]",
                           R"({"text":"a")",
                           R"({"text":"a"}x)",
                           R"({"text":"a",})",
                           R"({"text":1})",
                           R"({"k":1})",
                           R"({"text":"a","text":"b"})",
                           R"({"text":"a","k":0})",
                           R"({"text":"a","k":1001})",
                           R"({"text":"a","k":1.0})",
                           R"({"text":"a","k":01})",
                           R"({"text":"a","k":-1})",
                           R"({"text":"a","k":99999999999999999999})",
                           R"({"text":"\ud800"})",
                           R"({"text":"\udc00\ud800"})",
                           R"({"text":"\x"})",
                           R"({"text":"\u12)",
                           "{\"text\":\"\xff\"}",
                           "{\"text\":\"\n\"}",
                           R"({"text":"a","exact":true})",
                           R"({"text":"a","model":""})",
                           "{\"text\":\"\xed\xa0\x80\"}"})
    claim(!reader.read(body), body);
  for (const char* query : {"", "q", "k=1", "q=a&k=0", "q=a&k=1001", "q=a%", "q=a%2", "q=a%zz", "q=%ff", "q=a b",
                            "q=a&x=1", "q=a&q=b", "q=a&", "&q=a", "q=a&k=1x", "q=a&k= 1", "q=a&k=1 "})
    claim(!reader.read_query(query), query);
}

TEST(a_price_follows_the_median) {
  Prices prices;
  const std::size_t kind = prices.add();
  claim(prices.of(kind) == Prices::untimed, "never timed");
  prices.learn(kind, 9e5);
  check::Random random;
  for (int round = 0; round < 2000; ++round) prices.learn(kind, random.next() % 10 == 0 ? 1e7 : 1e4);
  claim(prices.of(kind) > 5e3 && prices.of(kind) < 2e4, "one in ten that takes far longer does not matter");
}
