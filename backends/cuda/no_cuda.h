// The errors of a program without a usable CUDA backend. Thread rule: pure.
#pragma once
#include <string>

#include "core/base/error.h"

namespace ranklab {

enum class CudaAbsence {
  kNoModule,   // libranklab_cuda.so does not exist: built without CUDA
  kNotLoaded,  // it exists, but a library that it needs does not
  kNoDevice,   // it loaded, but there is no GPU or no driver
  kOtherBuild  // it belongs to another version of ranklab
};

Error no_cuda_error(CudaAbsence absence, const std::string& detail);

}  // namespace ranklab
