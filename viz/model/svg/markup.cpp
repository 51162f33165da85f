#include "viz/model/svg/markup.h"

#include "core/base/utf8.h"

namespace ranklab::viz {

std::string as_markup(std::string_view text) {
  std::string out;
  for (const char c : is_utf8(text) ? std::string(text) : shown_as_utf8(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace ranklab::viz
