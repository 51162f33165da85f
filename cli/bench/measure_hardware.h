// Kernels and collectives of the machine at hand, timed: what `ranklab bench hardware` fits a profile to. On a CPU a
// rank is a thread with one core. Cost: some seconds to a minute. Thread rule: main thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/sim/hardware_points.h"

namespace ranklab {

struct HardwareSizes {
  std::vector<int64_t> rows, cols;         // of products; cols also their inner dimension
  std::vector<int64_t> positions, widths;  // of attention
  std::vector<int64_t> elements;           // of elementwise kernels
  std::vector<int> ranks;                  // of groups
  std::vector<int64_t> bytes;              // of collectives
};

HardwareSizes hardware_sizes(bool gpu, bool quick);
// Kernels in fp32 on a CPU, in bf16 on a GPU; collectives between ranks that are threads of this process.
HardwarePoints measure_hardware(at::Device device, const HardwareSizes& sizes, bool with_collectives);

}  // namespace ranklab
