// The background that a picture is drawn on. Thread rule: pure.
#pragma once
#include <cstdint>

namespace ranklab::viz {

enum class Ground : uint8_t { kLight, kDark };

}  // namespace ranklab::viz
