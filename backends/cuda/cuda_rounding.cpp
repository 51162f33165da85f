#include "backends/cuda/cuda_rounding.h"

#include <c10/cuda/CUDAStream.h>

#include <string>

#include "backends/cuda/kernels/cast_body.h"
#include "backends/cuda/kernels/operand_kernels.h"
#include "backends/cuda/kernels/quantize_kernels.h"
#include "backends/cuda/kernels/scaled_squares.h"
#include "core/base/error.h"

namespace ranklab {
namespace {

void accept(cudaError_t code, const char* step) {
  RANKLAB_CHECK(code == cudaSuccess, ErrorKind::kEnvironment, .where = "cuda backend",
                .what = std::string("a kernel of quantization could not be started: ") + step,
                .got = cudaGetErrorString(code), .want = "a GPU of compute capability 8.0 or higher",
                .fix = "use --bf16, or build for this GPU (-DRANKLAB_CUDA_ARCHITECTURES)");
}

cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

class CudaRounding final : public DeviceRounding {
 public:
  int capability() const override {
    int device = 0, major = 0, minor = 0;
    accept(cudaGetDevice(&device), "the current device");
    accept(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "its capability");
    accept(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "its capability");
    return 10 * major + minor;
  }
  void group_amax(const DeviceMatrix& matrix, float* amax) const override {
    accept(launch_group_amax(matrix, amax, stream()), "largest magnitudes");
  }
  void make_scales(const ScaleMaker& maker, const float* amax, int64_t groups, const float* tensor_amax,
                   float* scales) const override {
    accept(launch_make_scales(maker, amax, groups, tensor_amax, scales, stream()), "scales");
  }
  void round(const DeviceMatrix& matrix, const RoundingGrid& grid, const float* scales, const DeviceNoise& noise,
             const DeviceRounded& out) const override {
    accept(launch_round(matrix, grid, scales, noise, out, stream()), "rounding");
  }
  void round_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker, float* scales,
                     float* values) const override {
    const auto launch = [&](const auto* x) {
      accept(launch_quantize(task_at_once(matrix, x, grid, maker, scales, values), stream()), "rounding at once");
    };
    if (matrix.bf16) return launch(static_cast<const Bf16Bits*>(matrix.x));
    launch(static_cast<const float*>(matrix.x));
  }
  bool casts_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker) const override {
    return takes_at_once(matrix, grid, maker);
  }
  void cast_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker,
                    bool along_columns_first, float* scales, const DeviceRounded& out) const override {
    accept(launch_cast_at_once(matrix, grid, maker, along_columns_first, scales, out, stream()), "codes at once");
  }
  void hash_rows(const DeviceMatrix& matrix, uint64_t* numbers) const override {
    accept(launch_hash_rows(matrix, numbers, stream()), "numbers of rows");
  }
};

}  // namespace

const DeviceRounding& cuda_rounding() {
  static const CudaRounding rounding;
  return rounding;
}

}  // namespace ranklab
