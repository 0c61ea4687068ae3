// Plain pairs of features are read number for number; of everything else only the number of values is told.
#include <string>

#include "beamwood/wire/pairs.hpp"
#include "bytes.hpp"

namespace {

using namespace beamwood;

FeaturePairs pairs(std::string_view body) {
  const std::vector<char> own(body.begin(), body.end()); // so that a sanitizer sees a byte too far
  return PairReader({own.data(), own.size()}).read();
}

} // namespace

TEST(plain_pairs_are_read) {
  const std::string body = R"({"k": 3, "features" : [ [0, 1], [2147483647,-0.5e1] ,[7, 3.4028234e38]], "x": [1,2]})";
  const FeaturePairs found = pairs(body);
  CHECK(found.ids == std::vector<std::int64_t>{0, 2147483647, 7});
  CHECK(found.values == std::vector<float>{1.0f, -5.0f, 3.4028234e38f});
  CHECK(body.substr(found.from, found.to - found.from) == "[ [0, 1], [2147483647,-0.5e1] ,[7, 3.4028234e38]]");
  CHECK(!found.odd && !found.twice);
  CHECK(found.others == 5);
  CHECK(pairs(R"({"features":[]})").to == 14);
}

TEST(what_is_no_plain_pair_is_told) {
  for (const char* element :
       {"[0]", "[0,1,2]", "0", "[0,null]", "[0,\"1\"]", "[0.0,1]", "[-1,1]", "[01,1]", "[2147483648,1]", "[1,1e39]",
        "[1,.5]", "[1,5.]", "[1,+5]", "[1,1e]", "[1,--1]", "[1 1]", "[99999999999999999999,1]", "[1,NaN]", ""}) {
    const FeaturePairs found = pairs(R"({"features":[[1,1],)" + std::string(element) + "]}");
    CLAIM(found.odd == std::size_t{1} && found.to == 0, element);
  }
  CHECK(pairs(R"({"features":[[1,1] [2,1]]})").odd);
  CHECK(pairs(R"({"features":[[1,1]],"features":[[2,1]]})").twice);
  CHECK(pairs(R"({"features":[[1,1])").odd);
}

TEST(only_a_field_of_the_body_itself_counts) {
  for (const char* body : {R"({"text":"features"})", R"({"x":{"features":[[1,1]]}})", R"(["features",[[1,1]]])",
                           R"({"text":"\"features\":[[1,1]]"})", R"({"features":"[[1,1]]"})", R"({"features")", "\"",
                           "", "{\"\\", "]]]}{\"features\":"}) {
    const FeaturePairs found = pairs(body);
    CLAIM(found.ids.empty() && found.to == 0 && !found.odd, body);
  }
  CHECK(pairs("{\"a\": [" + std::string(1000, ',') + "\",,,\"]}").others == 1002);
}
