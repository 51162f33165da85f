#include "core/trace/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "core/base/utf8.h"

namespace ranklab {
namespace {

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      break;
  }
  const auto value = static_cast<unsigned char>(c);
  if (value >= 0x20 && value != 0x7F) {
    out += c;
    return;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u00";
  out += kHex[value >> 4];
  out += kHex[value & 15];
}

template <typename T>
void append_number(std::string& out, T value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) out += "\xEF\xBF\xBD";
    if (length == 1) append_escaped(out, text[0]);
    if (length > 1) out.append(text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void append_json_int(std::string& out, int64_t value) { append_number(out, value); }

void append_json_double(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    append_number(out, value);
  }
}

void append_json_us(std::string& out, int64_t nanoseconds) {
  const uint64_t magnitude =
      nanoseconds < 0 ? ~static_cast<uint64_t>(nanoseconds) + 1 : static_cast<uint64_t>(nanoseconds);
  if (nanoseconds < 0) out += '-';
  append_number(out, magnitude / 1000);
  const auto rest = static_cast<unsigned>(magnitude % 1000);
  if (rest == 0) return;
  out += '.';
  out += static_cast<char>('0' + rest / 100);
  out += static_cast<char>('0' + rest / 10 % 10);
  out += static_cast<char>('0' + rest % 10);
  while (out.back() == '0') out.pop_back();
}

}  // namespace ranklab
