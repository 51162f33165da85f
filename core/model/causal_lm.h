// A language model on one rank, as the runtime sees it. A pipeline rank holds some of the model's stages, in the order
// of Schedule::stages_of(); an unsplit model has one stage. Legend: B sequences, S tokens each, V vocabulary, H hidden.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/batch.h"
#include "core/nn/parameter.h"

namespace ranklab {

// Statistics of a step's forwards besides the loss, over the whole global batch: equal on all ranks.
struct ModelReport {
  double aux_loss_sum = 0;  // load-balancing loss times its coefficient, in the unit of loss_sum()
  double z_loss_sum = 0;
  double max_over_mean_load = 0;  // of the most loaded expert in the worst layer; 0 without experts
  double dropped_fraction = 0;    // as a fraction of all assignments of tokens to experts
  double dead_fraction = 0;       // fraction of experts without a token, in the worst layer
  // entropy of the experts' shares of tokens over its largest possible value, in the worst layer
  double load_entropy = 1;
  // largest over all heads of all layers (max_logit_book.h); unset: not recorded
  std::optional<double> max_attention_logit = {};
  int64_t clipped_heads = 0;  // heads whose queries and keys were scaled down because of it (core/optim/qk_clip.h)
};

struct DecodeCache;   // decode_cache.h
class MaxLogitBook;   // max_logit_book.h
class ParameterGate;  // core/parallel/parameter_gate.h

class CausalLm {
 public:
  virtual ~CausalLm() = default;
  virtual ParameterRegistry& registry() = 0;
  // Sum (not mean) of the token losses of this rank's batch: a scalar in fp32 (fp64 for fp64 models), equal on all tp
  // ranks. The caller divides by the global token count, so that ranks with different token counts get the right
  // weight.
  virtual at::Tensor loss_sum(const Batch& batch) = 0;
  // Full logits [B, S, V] on every tp rank, without padding columns; for sampling and tests.
  virtual at::Tensor logits(const Batch& batch) = 0;
  virtual void set_training(bool training) = 0;  // dropout on or off; initially on
  // Call after a step's optimizer update: updates what the model itself adjusts (the bias that balances experts).
  // Collective over all ranks.
  virtual ModelReport end_step() { return {}; }
  // The sum of the multi-token prediction losses of this rank's last stages since the last call, without their weight.
  // The backward of loss_sum() includes them; its value does not.
  virtual double take_mtp_loss_sum() { return 0; }

  // The largest attention logits of this step's forwards; null: the model does not record them.
  virtual MaxLogitBook* max_logits() { return nullptr; }

  // Tensors that the model itself adjusts and that checkpoints save, by global name; loading a checkpoint writes into
  // them in place. The same on every rank of a stage.
  virtual std::vector<std::pair<std::string, at::Tensor>> buffers() { return {}; }
  // Parameters may be released between uses (ZeRO stage 3), or still be gathered when a forward begins
  // (--overlap-param-gather): the model notifies the gate of each use. Null: they are always present. Throws
  // kInvalidArgument by default: a model without these notifications can have neither.
  virtual void set_parameter_gate(ParameterGate* gate);

  // Decoding with a KV cache, without recomputing the past; by default a model only has logits(). begin_decoding()
  // returns an empty cache for `sequences` sequences of at most `positions` tokens.
  virtual bool can_decode() const { return false; }
  virtual std::unique_ptr<DecodeCache> begin_decoding(int64_t sequences, int64_t positions);
  // Appends tokens to those in the cache. RETURNS: the logits [B, V] after the last token, as logits() does, on every
  // tp rank. REQUIRES: one stage, no autograd, room in the cache. Collective over tp.
  virtual at::Tensor decode(DecodeCache& cache, const at::Tensor& tokens_BS);

  // The defaults are for a model that is not split into stages.
  virtual int num_stages() const { return 1; }
  virtual std::vector<Parameter*> stage_parameters(int /*stage*/) { return registry().parameters(); }
  // The shape of the activations that stage `part` of a chain sends to the next stage for `sequences` sequences of
  // `tokens` tokens, when `result` is to be computed; with gradients or, under NoGradGuard, without.
  virtual std::vector<int64_t> boundary_shape(int part, int64_t sequences, int64_t tokens, StageResult result) const;
  // The first stage reads batch.tokens_BS, the others `input`. The last stage returns loss_sum() or logits(), the
  // others the activations for the next stage. The first stage needs tokens and the last one targets; with multi-token
  // prediction the stage that has its modules also needs tokens.
  virtual at::Tensor forward_stage(int stage, const at::Tensor& input, const Batch& batch, StageResult result);
};

}  // namespace ranklab
