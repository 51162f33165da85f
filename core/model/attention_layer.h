// The attention of one transformer layer: a column-parallel projection, the softmax part, and a row-parallel
// projection. Heads are sharded over tp. Legend: S positions (this rank's with sequence parallelism), B sequences, H
// hidden. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>

#include "core/model/forward_context.h"
#include "core/nn/attention/attention_cache.h"
#include "core/nn/norm.h"
#include "core/nn/rope.h"
#include "core/parallel/context/context_parallel.h"
#include "core/parallel/tensor/linear.h"
#include "core/spec/model_config.h"

namespace ranklab {

class AttentionLayer {
 public:
  virtual ~AttentionLayer() = default;
  // [S, B, H] -> [S, B, H]
  virtual at::Tensor forward(const NormOutput& x, const ForwardContext& context) const = 0;

  // An empty KV cache, and one decoding step: x [S, B, H] holds the positions that follow those in the cache, all of
  // them on every tp rank (TokenContext::whole_sequence). Forward only.
  virtual AttentionCache make_cache(int64_t sequences, int64_t capacity, const at::TensorOptions& options) const = 0;
  virtual at::Tensor decode(const NormOutput& x, const ForwardContext& context, AttentionCache& cache) const = 0;
};

// What an attention layer is made with. The configuration selects MHA, GQA, MQA, latent or linear attention, or a state
// space in place of attention (core/spec/layer_specs.h).
struct AttentionContext {
  bool linear = false;  // ModelConfig::is_linear()
  bool mamba = false;   // ModelConfig::is_mamba()
  RopeTable rope;
  TensorParallel tp;
  ContextParallel cp = {};
  Communicator* kv = nullptr;   // the tp ranks that share this rank's key/value head; null: no rank does
  int64_t window = 0;           // AttentionShape::window
  int64_t chunk = 0;            // ModelConfig::chunk_of_layer()
  bool l2_norm = false;         // ModelConfig::has_qk_l2_norm()
  at::Tensor temperature = {};  // query_temperature.h; undefined: none
  at::Tensor max_logits = {};   // [heads of this rank], raised by training forwards (max_logit.h); undefined: none
  bool recompute = false;       // backward recomputes the softmax part instead of saving it
};
std::unique_ptr<AttentionLayer> make_attention_layer(const ModuleScope& scope, const ModelConfig& config,
                                                     const AttentionContext& context);

}  // namespace ranklab
