// GPT-2's printable spelling of bytes (Radford et al. 2019, encoder.py), in which byte-level vocabularies are written:
// a byte that prints in Latin-1 stands for itself, and the others get the code points from 256 on, in order, so a space
// is "Ġ" (U+0120). Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ranklab {

char32_t byte_code_point(uint8_t byte);
// The spelling of `bytes`: the UTF-8 of their code points.
std::string spelled_bytes(std::string_view bytes);
// The inverse of spelled_bytes(); nothing when a character spells no byte.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace ranklab
