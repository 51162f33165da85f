// What backends/cuda/module.cpp gives away, over the stand-ins: with RANKLAB_CUDA_MODULE naming the library of both,
// the program itself trains, generates and saves on a GPU that is not there. These come before the kernels of a real
// GPU, which are in a static library, so they are the ones that are found.
#include "backends/cuda/cuda_kernels.h"
#include "backends/cuda/cuda_rounding.h"
#include "tests/cuda/stand_in/host_tensors.h"
#include "tests/cuda/stand_in/stream_kernels.h"
#include "tests/cuda/stand_in/stream_rounding.h"

namespace ranklab {

// The loader asks for it once, when it has found a device and no tensor is there yet.
const DeviceRounding& cuda_rounding() {
  stand_in::use_host_tensors();
  return stand_in::stream_rounding();
}

const DeviceKernels& cuda_kernels() { return stand_in::stream_kernels(); }

}  // namespace ranklab
