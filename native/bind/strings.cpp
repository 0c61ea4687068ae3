// strings.cpp — lists of str in, string tables out, and numbers by string; bytes in, their checksum out.
#include "beamwood/strings.hpp"
#include "beamwood/xxh3.hpp"
#include "bindings.hpp"

namespace {

using namespace beamwood;

// A piece is hashed in a millisecond or, when it comes from a disk, in some tens of them: that soon Ctrl-C is heard.
constexpr std::size_t kPiece = 8 << 20;

// Other Python threads run meanwhile, also while pages of a mapped file are read from the disk.
std::uint64_t checksum(const In<std::uint8_t>& bytes) {
  const std::span<const std::uint8_t> all = view(bytes);
  const Workers workers = python_workers(1);
  const Unlocked unlocked;
  if (all.size() <= kPiece) return xxh3_64(all.data(), all.size());
  Xxh3 hash;
  for (std::size_t at = 0; at < all.size(); at += kPiece) {
    hash.add(all.data() + at, std::min(kPiece, all.size() - at));
    if (workers.interrupted()) throw Interrupted{};
  }
  return hash.value();
}

// (number, bytes, offsets) of a tuple of str; a number below the tuple's length is that of one which is no UTF-8.
nb::tuple pack_strings(const nb::tuple& strings) {
  std::vector<std::string_view> views; // into what each str keeps; the tuple keeps them all
  views.reserve(strings.size());
  std::vector<std::uint64_t> offsets{0};
  offsets.reserve(strings.size() + 1);
  for (const nb::handle text : strings) {
    Py_ssize_t size = 0;
    const char* const bytes = PyUnicode_Check(text.ptr()) ? PyUnicode_AsUTF8AndSize(text.ptr(), &size) : nullptr;
    if (!bytes) {
      PyErr_Clear();
      return nb::make_tuple(views.size(), give(std::vector<std::uint8_t>()), give(std::vector<std::uint64_t>()));
    }
    views.emplace_back(bytes, static_cast<std::size_t>(size));
    offsets.push_back(offsets.back() + views.back().size());
  }
  std::vector<std::uint8_t> blob(offsets.back());
  {
    const Unlocked unlocked;
    auto to = blob.begin();
    for (const std::string_view text : views) to = std::copy(text.begin(), text.end(), to);
  }
  return nb::make_tuple(views.size(), give(std::move(blob)), give(std::move(offsets)));
}

// Strings of a file: there must be offsets.
StringList list_of(const In<std::uint8_t>& blob, const In<std::uint64_t>& offsets) {
  if (offsets.shape(0) == 0) throw Damaged{};
  return {view(blob), view(offsets)};
}

// The slots of keys, or None and the numbers of two that are equal.
nb::tuple key_slots(const In<std::uint8_t>& blob, const In<std::uint64_t>& offsets, unsigned threads) {
  const StringList keys = list_of(blob, offsets);
  if (keys.size() > KeySlots::most) throw nb::value_error("more than 2^32 - 2 keys");
  const Workers workers = python_workers(threads);
  std::vector<std::uint32_t> slots;
  std::optional<Twins> twins;
  {
    const Unlocked unlocked;
    slots.resize(KeySlots::count(keys.size()));
    twins = fill_slots<KeySlots>(keys, slots, workers);
  }
  if (twins) return nb::make_tuple(nb::none(), twins->first, twins->second);
  return nb::make_tuple(give(std::move(slots)), 0, 0);
}

void find_keys(const In<std::uint8_t>& blob, const In<std::uint64_t>& offsets, const In<std::uint32_t>& slots,
               const nb::list& keys, const Out<std::int64_t>& found) {
  if (found.shape(0) != keys.size()) throw nb::value_error("wrong size");
  const StringList strings = list_of(blob, offsets);
  if (!KeySlots::fits(slots.shape(0), strings.size())) throw Damaged{};
  const StringTable<KeySlots> table(strings, view(slots));
  std::size_t i = 0;
  for (const nb::handle key : keys) {
    Py_ssize_t size = 0;
    const char* const bytes = PyUnicode_AsUTF8AndSize(key.ptr(), &size);
    if (!bytes) { // a lone surrogate: no key has one
      if (!PyUnicode_Check(key.ptr())) throw nb::python_error();
      PyErr_Clear();
    }
    const std::uint64_t id = bytes ? table.find({bytes, static_cast<std::size_t>(size)}) : table.absent;
    if (id == table.damaged) throw Damaged{};
    found.data()[i++] = id == table.absent ? -1 : static_cast<std::int64_t>(id);
  }
}

} // namespace

void bind_strings(nb::module_& m) {
  m.def("pack_strings", pack_strings, nb::arg("strings"), "How many are UTF-8, their bytes, and the offset of each.");
  m.def("key_slots", key_slots, nb::arg("blob"), nb::arg("offsets"), nb::arg("threads"),
        "The hash of a table of keys, or None and the numbers of two that are equal.");
  m.def("find_keys", find_keys, nb::arg("blob"), nb::arg("offsets"), nb::arg("slots"), nb::arg("keys"),
        nb::arg("found"), "The number of each key in a table of keys, or -1.");
  m.def("xxh3_64", checksum, nb::arg("bytes"), "The XXH3-64 of some bytes. Other Python threads run meanwhile.");
}
