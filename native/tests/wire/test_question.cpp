// Plain questions are read, everything else is left to the full reader.
#include <string>

#include "beamwood/wire/question.hpp"
#include "bytes.hpp"

namespace {

using namespace beamwood;

const QuestionReader reader(10, 10, 1000, 1000);

} // namespace

TEST(plain_questions_are_read) {
  const auto asked = reader.read(R"( {"k": 3, "text": "a\u00fc\ud83c\udf32\"\n", "beam":1000, "model":"m"} )");
  CLAIM(asked && asked->text == "a\xc3\xbc\xf0\x9f\x8c\xb2\"\n" && asked->model == "m", "strings");
  CLAIM(asked && asked->k == 3 && asked->beam == 1000, "numbers");
  const auto queried = reader.read_query("q=a%C3%BC+b&k=3");
  CLAIM(queried && queried->text == "a\xc3\xbc b" && queried->k == 3 && queried->beam == 10, "a query string");
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
    CLAIM(!reader.read(body), body);
  for (const char* query : {"", "q", "k=1", "q=a&k=0", "q=a&k=1001", "q=a%", "q=a%2", "q=a%zz", "q=%ff", "q=a b",
                            "q=a&x=1", "q=a&q=b", "q=a&", "&q=a", "q=a&k=1x", "q=a&k= 1", "q=a&k=1 "})
    CLAIM(!reader.read_query(query), query);
}

TEST(damaged_questions_are_read_within_limits_or_not_at_all) {
  check::Random random;
  const std::string body = R"({"k": 3, "text": "a\u00fc\ud83c\udf32\"\n z", "beam":1000, "model":"m"})";
  const std::string query = "q=a%C3%BC+b&k=3&beam=20&model=m";
  for (int round = 0; round < 50000; ++round) {
    const auto a = check::on_heap(check::damaged(random, body)), b = check::on_heap(check::damaged(random, query));
    for (const auto& asked : {reader.read({a.data(), a.size()}), reader.read_query({b.data(), b.size()})}) {
      if (!asked) continue;
      CHECK(asked->k >= 1 && asked->k <= 1000 && asked->beam >= 1 && asked->beam <= 1000);
      for (const char *p = asked->text.data(), *const end = p + asked->text.size(); p != end;) {
        const char* const at = p;
        const char32_t c = unicode::decode(p, end);
        CHECK(c != unicode::replacement || p - at == 3); // valid UTF-8
      }
    }
  }
}
