#include "backends/cuda/nccl/nccl_types.h"

#include "core/base/error.h"

namespace ranklab {

ncclDataType_t nccl_type(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return ncclFloat32;
    case c10::ScalarType::Double:
      return ncclFloat64;
    case c10::ScalarType::BFloat16:
      return ncclBfloat16;
    case c10::ScalarType::Half:
      return ncclFloat16;
    case c10::ScalarType::Long:
      return ncclInt64;
    case c10::ScalarType::Int:
      return ncclInt32;
    case c10::ScalarType::Char:
      return ncclInt8;
    case c10::ScalarType::Byte:
      return ncclUint8;
    default:
      throw Error(ErrorKind::kInvalidArgument, {.where = "nccl",
                                                .what = "NCCL cannot reduce this dtype",
                                                .got = c10::toString(type),
                                                .want = "fp32, fp64, bf16, fp16, int64, int32, int8 or uint8",
                                                .fix = "convert the tensor first"});
  }
}

ncclRedOp_t nccl_reduction(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kAvg:
      return ncclAvg;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
  }
  throw Error(ErrorKind::kInternal, {.where = "nccl", .what = "not a reduction"});
}

}  // namespace ranklab
