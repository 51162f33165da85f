#include "cli/bench/bench_device.h"

#include "backends/cuda/cuda_backend.h"
#include "core/base/error.h"

namespace ranklab {

at::Device bench_device(const std::string& name, const std::string& where) {
  std::string why_not;
  const bool has_gpu = name != "cpu" && cuda_backend_available(&why_not);
  RANKLAB_CHECK(name != "cuda" || has_gpu, ErrorKind::kEnvironment, .where = where, .what = "there is no GPU to time",
                .got = why_not, .fix = "--device cpu");
  return has_gpu ? at::Device(at::kCUDA) : at::Device(at::kCPU);
}

}  // namespace ranklab
