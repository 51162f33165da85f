#include "core/base/shell_quote.h"

namespace ranklab {

std::string shell_quote(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_of(" \t\n\"'\\$`*?[]{}();&|<>!#~") == std::string::npos;
  return plain ? text : shell_quote(text);
}

}  // namespace ranklab
