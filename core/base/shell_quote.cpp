#include "core/base/shell_quote.h"

#include <algorithm>

namespace ranklab {

std::string shell_quote(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_word(const std::string& text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  const bool plain = !text.empty() && std::ranges::none_of(text, is_control) &&
                     text.find_first_of(" \"'\\$`*?[]{}();&|<>!#~") == std::string::npos;
  return plain ? text : shell_quote(text);
}

std::string shell_path(const std::string& path) { return shell_word(path.starts_with('-') ? "./" + path : path); }

}  // namespace ranklab
