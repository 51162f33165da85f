// A manifest ends in `"xxh3":"<16 digits>"}` and a newline. The digits are the hash of the whole text, in which they
// themselves count as zeros. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/checksum.h"

namespace ranklab {

inline constexpr const char* kManifestHashKey = "xxh3";
inline constexpr size_t kHashDigits = 16;
inline constexpr size_t kHashTail = kHashDigits + 3;  // from the digits to the end

// REQUIRES: text.size() >= kHashTail.
inline uint64_t manifest_hash(std::string_view text) {
  Xxh3 hash;
  hash.add(text.substr(0, text.size() - kHashTail));
  hash.add(std::string(kHashDigits, '0'));
  hash.add(text.substr(text.size() - (kHashTail - kHashDigits)));
  return hash.value();
}

}  // namespace ranklab
