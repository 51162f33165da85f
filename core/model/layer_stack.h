// What a language model is made of, from first to last: an embedding, layers, a head. A model says what each of them
// makes and computes; LayeredModel (layered_model.h) cuts it into pipeline stages, gathers its parameters for ZeRO
// stage 3, computes its layers again in backward and decodes with it. Legend: S positions (this rank's with sequence
// parallelism), B sequences, H hidden. Thread rule: its rank's thread.
#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/model/causal_lm.h"
#include "core/model/forward_context.h"
#include "core/model/residual_stream.h"
#include "core/nn/attention_cache.h"
#include "core/parallel/quantizer_book.h"
#include "core/parallel/tensor_parallel.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {

class LayerStack {
 public:
  virtual ~LayerStack() = default;

  // Parameters of what this rank holds, in the order of the forward; each is called at most once for a part.
  virtual void make_embedding() = 0;
  virtual void make_layer(int64_t layer) = 0;
  virtual void make_head() = 0;
  // Parameters of the embedding that the head uses too, by name: make_head() makes those that this rank does not have.
  virtual std::vector<std::string> shared_parameters() const { return {}; }

  // The tokens of the batch -> what enters the first layer.
  virtual ResidualStream embed(const ForwardContext& context) = 0;
  virtual void run_layer(int64_t layer, ResidualStream& stream, const ForwardContext& context) = 0;
  // What the context asks for: the sum of the token losses, a scalar equal on all tp ranks, or the logits of all tokens
  // of the batch, [B, S, V] on every tp rank.
  virtual at::Tensor predict(const ResidualStream& stream, const ForwardContext& context) = 0;

  // The rest has defaults. CausalLm says what these are.
  virtual std::vector<std::pair<std::string, at::Tensor>> buffers() { return {}; }
  virtual ModelReport end_step() { return {}; }
  virtual double take_mtp_loss_sum() { return 0; }
  // Room for what decoding keeps of a layer; a model that decodes reads and fills ForwardContext::cache.
  virtual bool can_decode() const { return false; }
  virtual AttentionCache make_cache(int64_t layer, int64_t sequences, int64_t positions,
                                    const at::TensorOptions& options) const;
};

// Layers [first_layer, end_layer) as one pipeline stage.
struct StageLayers {
  int64_t first_layer = 0;
  int64_t end_layer = 0;
  bool is_first = false;  // embeds tokens
  bool is_last = false;   // predicts
};

struct LayeredOptions {
  bool sequence_parallel = false;  // no effect when tp is 1
  uint64_t seed = 1234;
  at::ScalarType dtype = at::kFloat;
  std::string moe_dispatcher = "alltoall";  // how tokens travel to their experts (dispatcher.h)
  RecomputePolicy recompute = {};
  QuantizationSettings quantization = {};  // of products; the default: all of them in `dtype`
  std::vector<StageLayers> stages = {};    // of this rank; empty: the whole model in one
  bool values_later = false;               // parameters have no memory until make_values() (initial_values.h)
};

// What a stack is made with; what it refers to outlives the stack.
struct StackPlace {
  ParameterRegistry& registry;
  RankContext& context;
  TensorParallel tp;
  const LayeredOptions& options;  // until the stack is made
};

}  // namespace ranklab
