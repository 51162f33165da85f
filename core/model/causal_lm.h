// What the runtime asks of a language model on one rank. A pipeline rank holds some stages of it, in the order of
// Schedule::stages_of(); a model that is not cut is one stage. Legend: B sequences, S tokens each, V vocabulary,
// H hidden.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/batch.h"
#include "core/nn/parameter.h"

namespace ranklab {

// What a step's forwards left beside the loss, over the whole global batch: equal on all ranks.
struct ModelReport {
  double aux_loss_sum = 0;  // balancing of experts, times its coefficient, in the unit of loss_sum()
  double z_loss_sum = 0;
  double max_over_mean_load = 0;  // of the busiest expert of the worst layer; 0 without experts
  double dropped_fraction = 0;    // of all assignments of tokens to experts
};

struct DecodeCache;   // decode_cache.h
class ParameterGate;  // core/parallel/parameter_gate.h

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
  // After the update of a step: what the model adjusts itself (the bias that balances experts). Collective over all
  // ranks.
  virtual ModelReport end_step() { return {}; }
  // Losses of further tokens that backward of loss_sum() goes through, though its value has them not: their sum since
  // the last call, before any weight; of this rank's last stages.
  virtual double take_mtp_loss_sum() { return 0; }

  // What the model adjusts itself and a checkpoint keeps, in place, by global name; the same on every rank of a stage.
  virtual std::vector<std::pair<std::string, at::Tensor>> buffers() { return {}; }
  // Parameters may be away between uses (ZeRO stage 3): the model says when it uses which. Null: they are always there.
  // Throws kInvalidArgument by default: a model that does not say cannot have its parameters shared out.
  virtual void set_parameter_gate(ParameterGate* gate);

  // Token by token, without computing the past again; the default has logits() only. begin_decoding(): an empty cache
  // for so many sequences of at most `positions` tokens.
  virtual bool can_decode() const { return false; }
  virtual std::unique_ptr<DecodeCache> begin_decoding(int64_t sequences, int64_t positions);
  // Appends tokens to those in the cache. RETURNS: logits [B, V] after the last one, as logits() has them, on every tp
  // rank. REQUIRES: one stage, no autograd, room in the cache. Collective over tp.
  virtual at::Tensor decode(DecodeCache& cache, const at::Tensor& tokens_BS);

  // The defaults are those of a model that is not cut.
  virtual int num_stages() const { return 1; }
  virtual std::vector<Parameter*> stage_parameters(int /*stage*/) { return registry().parameters(); }
  // What travels from stage to stage for so many sequences of so many tokens, on this rank.
  virtual std::vector<int64_t> boundary_shape(int64_t sequences, int64_t tokens) const;
  // The first stage reads batch.tokens_BS, the others `input`; the last one returns loss_sum() or logits(), the others
  // what travels on. Tokens are needed in the first stage, targets in the last, which reads tokens too when it predicts
  // several.
  virtual at::Tensor forward_stage(int stage, const at::Tensor& input, const Batch& batch, StageResult result);
};

}  // namespace ranklab
