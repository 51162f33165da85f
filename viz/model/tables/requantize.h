// Estimates what another format, or another scale, would do to a tensor, from the histogram of its magnitudes: inside
// each power of two the density is interpolated from its neighbours, and all values share one scale. Blocks with scales
// of their own lose less than estimated. Cost: some thousand operations. Thread rule: pure.
#pragma once
#include <string_view>

#include "viz/model/tables/precision_table.h"

namespace ranklab::viz {

enum class ScaleChoice : uint8_t {
  kAmax,        // amax maps to the format's largest number
  kPowerOfTwo,  // ... with the scale rounded to a power of two so that amax stays in range
  kMx,          // OCP MX: 2 ^ (floor(log2 amax) - exponent of the largest number); the top may saturate
  kRun,         // the mean of the run's scales, for any format
  kNone,        // a scale of 1
  kCount
};
std::string_view name(ScaleChoice choice);

struct RequantizeEstimate {
  double scale = 1;  // the factor by which codes are multiplied
  double underflow_share = 0;
  double saturated_share = 0;
  double sqnr_db = 0;
};
RequantizeEstimate requantize(const TensorSample& sample, const FormatRange& format, ScaleChoice choice);

}  // namespace ranklab::viz
