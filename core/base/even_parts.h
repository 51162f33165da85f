// Nearly equal parts of a number. Torch-free. Thread rule: pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ranklab {

// Splits `count` into `parts` numbers; if it does not divide, the first ones are one larger.
inline std::vector<int64_t> even_parts(int64_t count, int64_t parts) {
  std::vector<int64_t> out(static_cast<size_t>(parts), count / parts);
  for (int64_t i = 0; i < count % parts; ++i) ++out[static_cast<size_t>(i)];
  return out;
}

}  // namespace ranklab
