// What another format, or another scale, would do to a tensor, estimated from the histogram of its magnitudes: inside
// each power of two numbers grow denser or rarer as its neighbours have it, and all share one scale. Blocks with scales
// of their own lose less than that. Cost: some thousand operations. Thread rule: pure.
#pragma once
#include <string_view>

#include "viz/model/precision_table.h"

namespace ranklab::viz {

enum class ScaleChoice : uint8_t {
  kAmax,        // the largest magnitude becomes the format's largest number
  kPowerOfTwo,  // ... up to the next power of two
  kMx,          // OCP MX: 2 ^ (floor(log2 amax) - exponent of the largest number); the top may saturate
  kRun,         // the mean of the run's scales, whatever the format
  kNone,        // 1
  kCount
};
std::string_view name(ScaleChoice choice);

struct RequantizeEstimate {
  double scale = 1;  // that codes are multiplied with
  double underflow_share = 0;
  double saturated_share = 0;
  double sqnr_db = 0;
};
RequantizeEstimate requantize(const TensorSample& sample, const FormatRange& format, ScaleChoice choice);

}  // namespace ranklab::viz
