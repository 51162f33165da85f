// UTF-8 and Unicode's normal forms (UAX 15), using utf8proc. Cost: nothing for ASCII, else about 5 bytes of memory per
// byte of text. Thread rule: pure.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

// Throws kInvalidArgument naming the first byte that is not UTF-8.
void require_utf8(std::string_view text);

// Applies these forms to the text, one after another. REQUIRES: text is UTF-8.
std::string normalized(std::string_view text, std::span<const NormalForm> forms);

// The size in bytes of the character at the beginning or the end of `text` if it has Unicode's property White_Space,
// else 0.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

}  // namespace ranklab
