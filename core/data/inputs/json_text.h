// The text in a line of JSON: the string under a key of an object. Nothing else of the line is kept, and nothing
// recurses, so that a hostile one costs its length. Thread rule: pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ranklab::inputs {

struct JsonText {
  std::optional<std::string> text = std::nullopt;  // without a problem
  std::string problem = {}, got = {};
};

// Any string, an empty one too. Problems: no JSON object, invalid UTF-8 or escapes, a zero byte, more than one value,
// the key absent, there twice or with another type.
JsonText json_text(std::string_view line, const std::string& key);

}  // namespace ranklab::inputs
