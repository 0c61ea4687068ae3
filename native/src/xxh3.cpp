// The only file that includes the vendored xxhash.h. Its functions are static here: no symbol of another xxHash in the
// same process is called by mistake, and none of ours is seen.
#include "beamwood/xxh3.hpp"

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB // no allocation of its own
#include <xxhash/xxhash.h>

namespace beamwood {

struct Xxh3::State {
  XXH3_state_t inner;
};

std::uint64_t xxh3_64(const void* data, std::size_t size) noexcept { return XXH3_64bits(data, size); }

Xxh3::Xxh3() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->inner); }
Xxh3::~Xxh3() = default;
void Xxh3::add(const void* data, std::size_t size) noexcept { XXH3_64bits_update(&state_->inner, data, size); }
std::uint64_t Xxh3::value() const noexcept { return XXH3_64bits_digest(&state_->inner); }

} // namespace beamwood
