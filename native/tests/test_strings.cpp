// strings.hpp: every string is found and no other, twins are reported, damage ends a look-up inside the arrays.
#include "beamwood/strings.hpp"

#include <random>
#include <string>

#include "check.hpp"

namespace {

using namespace beamwood;

struct Packed {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> offsets{0};
  StringList list() const { return {bytes, offsets}; }
};

Packed packed(const std::vector<std::string>& strings) {
  Packed made;
  for (const std::string& text : strings) {
    made.bytes.insert(made.bytes.end(), text.begin(), text.end());
    made.offsets.push_back(made.bytes.size());
  }
  return made;
}

std::vector<std::string> some(std::size_t count) {
  std::vector<std::string> made;
  for (std::size_t i = 0; i < count; ++i) made.push_back(std::string(i % 7, 'x') + std::to_string(i));
  return made;
}

template <class Slots> void every_string_is_found(unsigned threads) {
  for (const std::size_t count : {0u, 1u, 2u, 3u, 100u, 9000u}) {
    const auto strings = some(count);
    const Packed own = packed(strings);
    std::vector<typename Slots::Word> slots(Slots::count(count));
    CHECK(Slots::fits(slots.size(), count));
    CHECK(!fill_slots<Slots>(own.list(), slots, Workers{threads}));
    const StringTable<Slots> table(own.list(), slots);
    bool all = true;
    for (std::size_t i = 0; i < count; ++i) all = all && table.find(strings[i]) == i;
    CHECK(all);
    CHECK(table.find("not there") == table.absent);
    CHECK(table.find("") == table.absent);
  }
}

template <class Slots> void damage_stays_inside(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto strings = some(1 + random() % 50);
  Packed own = packed(strings);
  std::vector<typename Slots::Word> slots(Slots::count(strings.size()));
  fill_slots<Slots>(own.list(), slots);
  for (int i = 0; i < 5; ++i) {
    slots[random() % slots.size()] = static_cast<typename Slots::Word>(random());
    own.offsets[random() % own.offsets.size()] = random() % 3 ? random() % 300 : ~std::uint64_t{0} - random() % 9;
  }
  const StringTable<Slots> table(own.list(), slots);
  for (const std::string& text : strings) {
    const std::uint64_t id = table.find(text);
    CHECK(id == table.absent || id == table.damaged || own.list().at(id) == std::string_view(text));
  }
}

} // namespace

TEST(every_string_is_found_and_no_other) {
  for (const unsigned threads : {1u, 4u}) {
    every_string_is_found<KeySlots>(threads);
    every_string_is_found<TermSlots>(threads);
  }
}

TEST(the_first_string_that_an_earlier_one_equals_is_reported) {
  auto strings = some(5000);
  strings[4000] = strings[17];
  strings[4500] = strings[3];
  std::vector<std::uint32_t> slots(KeySlots::count(strings.size()));
  const Packed own = packed(strings);
  const Twins twins = fill_slots<KeySlots>(own.list(), slots, Workers{3}).value_or(Twins{});
  CHECK(twins.first == 17 && twins.second == 4000);
}

TEST(damaged_strings_never_lead_outside) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    damage_stays_inside<KeySlots>(seed);
    damage_stays_inside<TermSlots>(seed);
  }
  Packed own = packed(some(5000));
  own.offsets[4321] = own.bytes.size() + 1;
  std::vector<std::uint64_t> slots(TermSlots::count(5000));
  bool refused = false;
  try {
    fill_slots<TermSlots>(own.list(), slots, Workers{2});
  } catch (const Damaged&) {
    refused = true;
  }
  CHECK(refused);
}
