// The parts of a language model: an embedding, layers, a head. A model defines the parameters and the forward of each;
// LayeredModel (layered_model.h) splits it into pipeline stages, gathers its parameters for ZeRO stage 3, recomputes
// its layers in backward and decodes with it. Legend: S positions (this rank's with sequence parallelism), B sequences,
// H hidden. Thread rule: its rank's thread.
#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/model/causal_lm.h"
#include "core/model/forward_context.h"
#include "core/model/residual_stream.h"
#include "core/nn/attention/attention_cache.h"
#include "core/parallel/context/context_parallel.h"
#include "core/parallel/quantized/quantizer_book.h"
#include "core/parallel/tensor_parallel.h"
#include "core/spec/context_exchange.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {

class LayerStack {
 public:
  virtual ~LayerStack() = default;

  // These create the parameters of the parts that this rank holds, in the order of the forward; called at most once per
  // part.
  virtual void make_embedding() = 0;
  virtual void make_layer(int64_t layer) = 0;
  virtual void make_head() = 0;
  // The names of embedding parameters that the head also uses; make_head() creates them if this rank does not have them
  // yet.
  virtual std::vector<std::string> shared_parameters() const { return {}; }

  // The tokens of the batch -> the input of the first layer.
  virtual ResidualStream embed(const ForwardContext& context) = 0;
  virtual void run_layer(int64_t layer, ResidualStream& stream, const ForwardContext& context) = 0;
  // Depending on context.result: the sum of the token losses, a scalar that is equal on all tp ranks; or the logits of
  // all tokens of the batch, [B, S, V] on every tp rank.
  virtual at::Tensor predict(const ResidualStream& stream, const ForwardContext& context) = 0;

  // Multi-token prediction in a stage before the last one (LayeredOptions::mtp_part). make_mtp() creates the final norm
  // and the modules, which make_head() then omits. look_ahead() turns the output of the last layer into what predict()
  // in the last stage reads in its place: the model's state and, if gradients are recorded, the state of each module,
  // concatenated along the positions.
  virtual int64_t mtp_modules() const { return 0; }
  virtual void make_mtp() {}
  virtual std::vector<std::string> mtp_shared_parameters() const { return {}; }  // of the embedding, as above
  virtual at::Tensor look_ahead(const ResidualStream& stream, const ForwardContext& /*context*/) {
    return stream.sum();
  }

  // The remaining functions are optional and have defaults; CausalLm explains their meaning.
  virtual std::vector<std::pair<std::string, at::Tensor>> buffers() { return {}; }
  virtual ModelReport end_step() { return {}; }
  virtual double take_mtp_loss_sum() { return 0; }
  virtual MaxLogitBook* max_logits() { return nullptr; }
  // Whether a rank may have only a part of each sequence. embed(), run_layer() and predict() then read
  // ForwardContext::part, and attention gets keys and values from the other ranks (LayeredOptions::context).
  virtual bool splits_sequences() const { return false; }
  // Creates an empty KV cache for a layer; a model that can decode reads and fills ForwardContext::cache.
  virtual bool can_decode() const { return false; }
  virtual AttentionCache make_cache(int64_t layer, int64_t sequences, int64_t positions,
                                    const at::TensorOptions& options) const;
};

// Layers [first_layer, end_layer) as one pipeline stage.
struct StageLayers {
  int64_t first_layer = 0;
  int64_t end_layer = 0;
  bool is_first = false;     // embeds tokens
  bool is_last = false;      // has the head
  bool looks_ahead = false;  // has the modules of multi-token prediction, while another stage has the head
  bool behind_mtp = false;   // comes after the stage with those modules
};

struct LayeredOptions {
  bool sequence_parallel = false;  // no effect when tp is 1
  bool tp_comm_overlap = false;    // its collectives with the products before or after them
  uint64_t seed = 1234;
  at::ScalarType dtype = at::kFloat;
  std::string moe_dispatcher = "alltoall";  // how tokens are sent to their experts (dispatcher.h)
  bool overlap_shared_experts = false;      // compute them while tokens are sent to the others
  bool delay_weight_grads = false;          // those of experts: compute them while gradients are sent back
  bool pad_experts = false;                 // to their capacity
  RecomputePolicy recompute = {};
  ContextSplit context = {};               // how attention is split; no effect when cp is 1
  QuantizationSettings quantization = {};  // of GEMMs; by default all are in `dtype`
  std::vector<StageLayers> stages = {};    // the stages of this rank; empty: one stage with the whole model
  int mtp_part = -1;                       // the part of a chain with StageLayers::looks_ahead; -1: none
  bool values_later = false;               // parameters have no memory until make_values() (initial_values.h)
  bool notes_max_logits = false;           // whether CausalLm::max_logits() are recorded
};

// The arguments for making a stack; the objects it refers to must outlive the stack.
struct StackContext {
  ParameterRegistry& registry;
  RankContext& context;
  TensorParallel tp;
  ContextParallel cp;
  const LayeredOptions& options;  // valid only until the stack is made
};

}  // namespace ranklab
