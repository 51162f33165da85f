// Times kernels and collectives on this machine, to which `ranklab bench hardware` fits a profile. On a CPU a rank is a
// thread with one core. Cost: some seconds to a minute. Thread rule: main thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/sim/hardware_points.h"

namespace ranklab {

struct HardwareSizes {
  std::vector<int64_t> rows, cols;         // of matrix products; cols is also their inner dimension
  std::vector<int64_t> positions, widths;  // of attention layers
  std::vector<int64_t> elements;           // of elementwise kernels
  std::vector<int> ranks;                  // group sizes
  std::vector<int64_t> bytes;              // of collectives
};

HardwareSizes hardware_sizes(bool gpu, bool quick);
// Kernels are timed in fp32 on a CPU and in bf16 on a GPU; collectives between ranks that are threads of this process.
HardwarePoints measure_hardware(at::Device device, const HardwareSizes& sizes, bool with_collectives);

}  // namespace ranklab
