// The values that parameters start from, whole or any part of them: element by element from the stream of the global
// tensor (philox.h), so that a shard is made by itself, with the bits that the whole would have there. A rank that
// keeps shards (ZeRO stage 3) thus neither holds nor computes the rest; PyTorch's FSDP and torchtitan, whose random
// numbers come one after another, make a unit at a time. Cost: of a normal element one quarter of a Philox block and
// half a Box-Muller pair. Memory: nothing beside the values in fp32 on the CPU; others are made there a megabyte at a
// time. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/nn/parameter.h"

namespace ranklab {

// Elements from `first` of the local tensor, row-major, into `out`: flat, contiguous, of any float type and device.
// REQUIRES: they lie within the parameter, which is unmade.
void fill_initial(const Parameter& parameter, int64_t first, const at::Tensor& out);

// Allocates and fills what is unmade. Copies of the tensor see it.
void make_values(Parameter& parameter);
void make_values(const ParameterRegistry& registry);

}  // namespace ranklab
