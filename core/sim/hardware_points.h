// The timings of a machine, for hardware_fit.h. Torch-free. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/sim/kernel_time.h"

namespace ranklab {

struct KernelPoint {
  KernelWork work;
  double seconds = 0;
};

struct CollectivePoint {
  Verb verb = Verb::kAllReduce;
  int ranks = 1;
  int64_t bytes = 0;  // size of the whole tensor
  double seconds = 0;
};

struct HardwarePoints {
  std::vector<KernelPoint> products, attention, attention_backward, attention_square, elementwise;
  std::vector<CollectivePoint> collectives;
  double copy_bytes_per_s = 0;  // rate of a copy that is too large for caches
  double shortest_kernel_s = 0;
  double flops_fp64 = 0, flops_16bit = 0;  // rate reached by a large product; 0: not timed
};

}  // namespace ranklab
