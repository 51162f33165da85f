#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <numeric>

namespace ranklab {
namespace {

template <typename T, typename ToText>
std::string join_with(std::span<const T> parts, std::string_view separator, ToText to_text) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += to_text(parts[i]);
  }
  return out;
}

// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above.back();
}

std::string scaled(double value, double base, std::span<const char* const> units) {
  size_t unit = 0;
  while (std::round(std::abs(value)) >= base && unit + 1 < units.size()) {  // 999.9M is shown as 1.00B
    value /= base;
    ++unit;
  }
  const int digits = unit == 0 && value == std::floor(value) ? 0
                     : std::abs(value) < 10                  ? 2
                     : std::abs(value) < 100                 ? 1
                                                             : 0;
  return strprintf("%.*f%s", digits, value, units[unit]);
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return join_with(parts, separator, [](const std::string& s) { return s; });
}
std::string join(std::span<const int> parts, std::string_view separator) {
  return join_with(parts, separator, [](int v) { return std::to_string(v); });
}
std::string join(std::span<const int64_t> parts, std::string_view separator) {
  return join_with(parts, separator, [](int64_t v) { return std::to_string(v); });
}

std::string nearest_multiples(int64_t value, int64_t unit) {
  const int64_t below = value / unit * unit;
  std::vector<int64_t> near;
  if (below > 0) near.push_back(below);
  if (below <= std::numeric_limits<int64_t>::max() - unit) near.push_back(below + unit);
  return join(near, " or ");
}

std::string shape_text(std::span<const int64_t> shape) { return "[" + join(shape, ", ") + "]"; }

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string quote(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string without_controls(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < ' ' || byte == 0x7f) text[i] = '?';
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (c1) text[i] = text[i + 1] = '?';  // U+0080 to U+009F: U+009B begins a terminal's commands, as ESC [ does
  }
  return text;
}

std::string rank_name(int rank) { return "rank " + std::to_string(rank); }

std::string human_bytes(double bytes) {
  static constexpr std::array kUnits = {" B", " KiB", " MiB", " GiB", " TiB"};
  return scaled(bytes, 1024, kUnits);
}
std::string human_ns(double nanoseconds) {
  static constexpr std::array kUnits = {" ns", " us", " ms", " s"};
  return scaled(nanoseconds, 1000, kUnits);
}
std::string human_count(double count) {
  static constexpr std::array kUnits = {"", "k", "M", "B", "T"};
  return scaled(count, 1000, kUnits);
}

std::string nearest_name(std::string_view text, std::span<const std::string> candidates) {
  std::string best;
  const size_t third = std::max<size_t>(text.size() / 3, 1);
  size_t best_distance = std::min(third, text.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    // The beginning of a name is a better guess than any typo.
    const bool begins = text.size() > 2 && candidate.starts_with(text);
    const size_t distance = begins ? 0 : edit_distance(lower_case(text), lower_case(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string strprintf(const char* format, ...) {
  va_list args;
  va_start(args, format);
  va_list copy;
  va_copy(copy, args);
  const int size = std::vsnprintf(nullptr, 0, format, copy);
  va_end(copy);
  std::string out(static_cast<size_t>(std::max(size, 0)), '\0');
  std::vsnprintf(out.data(), out.size() + 1, format, args);
  va_end(args);
  return out;
}

}  // namespace ranklab
