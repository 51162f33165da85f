// What the runtime asks of a language model on one rank. Legend: B sequences, S tokens each, V vocabulary, H hidden.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/nn/parameter.h"

namespace ranklab {

struct Batch {
  at::Tensor tokens_BS;      // int64, the same on every rank of a model-parallel group
  at::Tensor targets_BS;     // int64, next tokens; -100 is ignored
  int64_t first_sample = 0;  // index of the first sequence in the global batch of this step: names the dropout elements
  int64_t step = 0;
};

class CausalLm {
 public:
  virtual ~CausalLm() = default;
  virtual ParameterRegistry& registry() = 0;
  // Sum (not mean) of the token losses of this rank's batch: a scalar in fp32 (fp64 for fp64 models), equal on all tp
  // ranks. The caller divides by the global token count, so that uneven ranks weigh right.
  virtual at::Tensor loss_sum(const Batch& batch) = 0;
  // Full logits [B, S, V] on every tp rank (padding columns removed); for sampling and tests.
  virtual at::Tensor logits(const Batch& batch) = 0;
  virtual void set_training(bool training) = 0;  // dropout on or off; on at the start
};

}  // namespace ranklab
