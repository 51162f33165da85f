// The fp32 values that are not finite.
#pragma once
#include <limits>

namespace ranklab {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace ranklab
