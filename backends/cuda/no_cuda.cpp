#include "backends/cuda/no_cuda.h"

namespace ranklab {

Error no_cuda_error(CudaAbsence absence, const std::string& detail) {
  ErrorText text{.where = "cuda backend"};
  switch (absence) {
    case CudaAbsence::kNoModule:
      text.what = "this build has no CUDA backend";
      text.got = detail;
      text.want = "libranklab_cuda.so";
      text.fix =
          "build it (cmake --preset cuda && cmake --build build/cuda; needs the CUDA toolkit and NCCL), or use "
          "--backend cpu_sim --device cpu";
      break;
    case CudaAbsence::kNotLoaded:
      text.what = "the CUDA backend cannot be loaded";
      text.got = detail;
      text.want = "NCCL and the CUDA libraries of this LibTorch (cuBLAS, cuDNN ...)";
      text.fix = "install them or add their folders to LD_LIBRARY_PATH, or use --backend cpu_sim --device cpu";
      break;
    case CudaAbsence::kNoDevice:
      text.what = "no GPU can be used";
      text.got = detail;
      text.want = "an NVIDIA GPU and its driver (nvidia-smi lists it)";
      text.fix = "check the driver and CUDA_VISIBLE_DEVICES, or use --backend cpu_sim --device cpu";
      break;
    case CudaAbsence::kOtherBuild:
      text.what = "the CUDA backend is from another build";
      text.got = detail;
      text.want = "the module built with this program";
      text.fix = "build both again, or unset RANKLAB_CUDA_MODULE";
      break;
  }
  return Error(ErrorKind::kEnvironment, std::move(text));
}

}  // namespace ranklab
