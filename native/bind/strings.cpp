// strings.cpp — bytes in, their checksum out: the bindings of xxh3.hpp.
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
  const nb::gil_scoped_release unlocked;
  if (all.size() <= kPiece) return xxh3_64(all.data(), all.size());
  Xxh3 hash;
  for (std::size_t at = 0; at < all.size(); at += kPiece) {
    hash.add(all.data() + at, std::min(kPiece, all.size() - at));
    if (workers.interrupted()) throw Interrupted{};
  }
  return hash.value();
}

} // namespace

void bind_strings(nb::module_& m) {
  m.def("xxh3_64", checksum, nb::arg("bytes"), "The XXH3-64 of some bytes. Other Python threads run meanwhile.");
}
