#include "core/base/toml/toml_string.h"

#include "core/base/text.h"

namespace ranklab {

std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += strprintf("\\u%04X", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace ranklab
