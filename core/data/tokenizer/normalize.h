// UTF-8 and Unicode's normal forms (UAX 15), by utf8proc. Cost: nothing for ASCII, else about 5 bytes of memory a byte
// of text. Thread rule: pure.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

// Throws kInvalidArgument naming the first byte that is none.
void require_utf8(std::string_view text);

// The text in these forms, one after another. REQUIRES: text is UTF-8.
std::string normalized(std::string_view text, std::span<const NormalForm> forms);

// Unicode's property White_Space, of the character at the beginning or the end of `text`: its bytes, 0 if it is none.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

}  // namespace ranklab
