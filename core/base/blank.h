// Recognizes lines that hold nothing but white space. Thread rule: pure.
#pragma once
#include <string_view>

namespace ranklab {

constexpr bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

}  // namespace ranklab
