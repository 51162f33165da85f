// The text in a line of JSON: the string under a key of an object. Nothing else in the line is kept, and there is no
// recursion, so a hostile line costs no more than its length. Thread rule: pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ranklab::inputs {

struct JsonText {
  std::optional<std::string> text = std::nullopt;  // set if there is no problem
  std::string problem = {}, got = {};
};

// Any string, including an empty one. Problems: not a JSON object, invalid UTF-8 or escapes, a zero byte, more than one
// value, and a key that is absent, duplicate or of another type.
JsonText json_text(std::string_view line, const std::string& key);

}  // namespace ranklab::inputs
