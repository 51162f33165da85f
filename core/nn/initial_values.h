// The initial values of parameters, or of any part of them: each element is drawn from the random stream of the global
// tensor (philox.h), so that a shard can be made alone, with the bits that it has in the whole. A rank that holds
// shards (ZeRO stage 3) thus neither holds nor computes the rest; PyTorch's FSDP and torchtitan draw random numbers
// sequentially and must materialize a whole unit at a time. Cost: a quarter of a Philox block and half a Box-Muller
// pair per normal element. Memory: none besides the values for fp32 on the CPU; others are staged there a megabyte at a
// time. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/nn/parameter.h"

namespace ranklab {

// Elements from `first` of the local tensor, row-major, into `out`: flat, contiguous, of any float type and device.
// REQUIRES: they lie within the parameter, which is unmade.
void fill_initial(const Parameter& parameter, int64_t first, const at::Tensor& out);

// Allocates and fills parameters that are unmade. Tensors that share their storage see the values.
void make_values(Parameter& parameter);
void make_values(const ParameterRegistry& registry);
// Gives an unmade parameter these values instead: flat, of its type, on its device; it takes their memory.
void set_values(Parameter& parameter, const at::Tensor& values);

}  // namespace ranklab
