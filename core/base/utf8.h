// UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF). File names may hold arbitrary bytes; JSON text
// may not. Thread rule: pure.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace ranklab {

// Length in bytes of the valid sequence at the start of `text`; 0 when there is none. REQUIRES: `text` is not empty.
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);
// Length of the byte order mark at the start of a file, which some editors write there and which is no part of its
// text: 3 (EF BB BF), or 0 without one.
size_t byte_order_mark(std::string_view begin);
// The text with \xNN for each invalid byte, for messages.
std::string shown_as_utf8(std::string_view text);
// Text that a model or a file has produced, made readable: valid UTF-8, newlines and tabs stay, other control
// characters become '.', and each invalid byte is replaced by `invalid`.
std::string readable_text(std::string_view text, std::string_view invalid = ".");

}  // namespace ranklab
