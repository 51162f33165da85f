// A count with its noun in the singular or plural: "1 layer", "2 layers". Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ranklab {

// `ending` is appended to make the noun a plural, for example "es" for "microbatch".
inline std::string counted(int64_t count, std::string_view noun, std::string_view ending = "s") {
  std::string text = std::to_string(count) + " ";
  text += noun;
  return count == 1 ? text : text.append(ending);
}

}  // namespace ranklab
