// The initial values of parameters, or of any part of them: each element is drawn from the random stream of the global
// tensor (philox.h), so a shard can be made alone, with the same bits that it has in the whole tensor. A rank that
// holds shards (ZeRO stage 3) therefore neither holds nor computes the rest; PyTorch's FSDP and torchtitan draw random
// numbers sequentially and must materialize a whole unit at a time. Cost: a quarter of a Philox block and half a
// Box-Muller pair per normal element. Memory: only the values for fp32 on the CPU; other types and devices are staged
// there one megabyte at a time. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "core/nn/parameter.h"

namespace ranklab {

// Writes the elements of the local tensor from `first` on, in row-major order, to `out`, which is flat, contiguous, and
// of any float type and device. REQUIRES: they lie within the parameter, and the parameter is unmade.
void fill_initial(const Parameter& parameter, int64_t first, const at::Tensor& out);

// Allocates and fills parameters that are unmade. Tensors that share their storage also see the values. On a GPU the
// matrices of a layer's experts are adjacent in memory, where a grouped product reads them (grouped_linear.h).
void make_values(Parameter& parameter);
void make_values(const ParameterRegistry& registry);
// The same for unmade parameters of one size, adjacent and in this order.
void make_adjacent_values(std::span<Parameter* const> parameters);
// Gives an unmade parameter these values instead. `values` is flat, of the parameter's type and on its device; the
// parameter takes over its memory.
void set_values(Parameter& parameter, const at::Tensor& values);
// Gives a parameter the elements of `whole` from `offset` on as its memory, which lives until its last part is given
// up.
void set_part(const Parameter& parameter, const at::Tensor& whole, int64_t offset);

}  // namespace ranklab
