// What is no finite number, in fp32.
#pragma once
#include <limits>

namespace ranklab {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace ranklab
