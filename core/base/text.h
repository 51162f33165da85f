// Small text helpers for messages and tables: joining, quoting, units, and the nearest known name for a typo.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ranklab {

// "a,,b" -> {"a", "", "b"}, "" -> {""}, as Python's str.split().
std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string join(std::span<const int> parts, std::string_view separator);
std::string join(std::span<const int64_t> parts, std::string_view separator);
// The positive, representable multiples of `unit` on both sides of a value that is not a multiple itself: "8 or 12".
std::string nearest_multiples(int64_t value, int64_t unit);
std::string shape_text(std::span<const int64_t> shape);  // "[2, 3]"; "[]" for a scalar
std::string lower_case(std::string_view text);           // ASCII letters only
constexpr bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == text.npos; }
std::string quote(std::string_view text);
// Text of a file as it may be shown on a terminal: control characters become '?', other UTF-8 stays.
std::string without_controls(std::string text);
std::string rank_name(int rank);  // "rank 3"
// "1.5 MiB", "512 B"
std::string human_bytes(double bytes);
// "12.3 us", "4.56 ms"
std::string human_ns(double nanoseconds);
// "12.3k", "4.5M"
std::string human_count(double count);
// The candidate that begins with `text`, or else the one with the smallest edit distance (letter case ignored, a swap
// counts one), or "" when none is closer than half its length.
std::string nearest_name(std::string_view text, std::span<const std::string> candidates);
// printf into a string
std::string strprintf(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace ranklab
