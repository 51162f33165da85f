#include "core/base/checksum.h"

#define XXH_INLINE_ALL  // the header alone: nothing to link
#include <xxhash.h>

#include <charconv>

#include "core/base/text.h"

namespace ranklab {

struct Xxh3::State {
  XXH3_state_t xxh;
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }
Xxh3::~Xxh3() = default;
void Xxh3::add(std::string_view bytes) { XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size()); }
uint64_t Xxh3::value() const { return XXH3_64bits_digest(&state_->xxh); }

uint64_t xxh3(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string xxh3_text(uint64_t hash) { return strprintf("%016lx", static_cast<unsigned long>(hash)); }

bool parse_xxh3_text(std::string_view text, uint64_t& hash) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
  return std::from_chars(text.data(), text.data() + text.size(), hash, 16).ec == std::errc();
}

}  // namespace ranklab
