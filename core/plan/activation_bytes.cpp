#include "core/plan/activation_bytes.h"

#include <algorithm>

#include "core/pipeline/verify.h"
#include "core/plan/layer_memory.h"

namespace ranklab {
namespace {

// The loss holds the logits twice (unsplit, its backward three times).
int64_t loss_temporary(const StepShape& s) {
  const int64_t logits = s.tokens() * s.vocab_width();
  const int64_t stream = s.local_tokens() * s.model.hidden_size;
  const int64_t loss = (s.dims.tp == 1 ? 3 : 2) * logits + stream;
  const int64_t head = logits + s.tokens() * s.model.hidden_size + 2 * stream;
  return std::max(loss, head);
}

// The embedding, both norms' concatenation, the last norm and the logits of each MTP module, beside its layer.
int64_t prediction_elements(const StepShape& s) {
  const int64_t stream = s.local_tokens() * s.model.hidden_size;
  return 3 * stream + 2 * s.local_tokens() + norm_elements(s, s.model.hidden_size) + s.tokens() * s.vocab_width();
}

// The stages of a pipeline rank, the largest as if all were like it.
struct LargestStage {
  LayerMemory layers;
  int64_t per_layer = 0;   // kept by the layer that keeps most
  int64_t boundaries = 0;  // tensors that came from another stage or go to one, kept until B
  bool has_last = false;
};

LayerMemory stage_layers(const StepShape& s, int part, int64_t& per_layer) {
  LayerMemory sum;
  const auto add = [&](int64_t layer) {
    const LayerMemory memory = layer_memory(s, layer);
    per_layer = std::max(per_layer, memory.kept);
    sum += memory;
  };
  const int64_t first = s.first_layer(part);
  for (int64_t layer = first; layer < first + s.layers(part); ++layer) add(layer);
  for (int64_t k = 0; s.is_last(part) && k < s.model.mtp_num_layers; ++k) {
    add(s.model.num_layers + k);
    sum.kept += prediction_elements(s);
  }
  return sum;
}

LargestStage largest_stage(const StepShape& s, const Schedule& schedule, int pp_rank) {
  LargestStage out;
  for (const int stage : schedule.stages_of(pp_rank)) {
    const int64_t ends = (schedule.is_first(stage) ? 1 : 0) + (schedule.is_last(stage) ? 1 : 0);
    const LayerMemory layers = stage_layers(s, schedule.part(stage), out.per_layer);
    if (layers.kept > out.layers.kept) out.layers = layers;
    out.boundaries = std::max(out.boundaries, 2 - ends);
    out.has_last = out.has_last || schedule.is_last(stage);
  }
  return out;
}

int64_t rope_elements(const StepShape& s) {
  if (s.model.position != PositionKind::kRope) return 0;
  return s.model.seq_length * (s.model.mla.enabled() ? s.model.mla.qk_pos_emb_head_dim : s.model.head_dim());
}

}  // namespace

ActivationBytes estimate_activations(const StepShape& s, const Schedule& schedule, int pp_rank) {
  const int64_t element = s.element_bytes();
  const LargestStage stage = largest_stage(s, schedule, pp_rank);
  const LayerMemory& layers = stage.layers;
  ActivationBytes bytes;
  bytes.per_layer = stage.per_layer * element;
  const double whole = static_cast<double>(layers.kept * element + stage.boundaries * s.boundary_bytes());
  // With sequence parallelism the gathered gradients are a category of their own.
  const auto deferred =
      static_cast<double>((layers.deferred + (s.sharded_sequence() ? 0 : layers.row_gradients)) * element);
  const StageMemory memory = stage_memory(schedule, pp_rank, deferred / whole);
  bytes.microbatches = memory.peak_memory / schedule.stage_share();
  bytes.layers = static_cast<int64_t>(bytes.microbatches * whole);
  bytes.ends = (norm_elements(s, s.model.hidden_size) + dropout_elements(s) + rope_elements(s)) * element;
  bytes.temporary = std::max(layers.temporary, stage.has_last ? loss_temporary(s) : 0) * element;
  if (s.sharded_sequence()) {
    const double row_gradients = memory.peak_deferred * static_cast<double>(layers.row_gradients);
    bytes.gathered = std::max(static_cast<int64_t>(row_gradients), s.tokens() * s.model.hidden_size) * element;
  }
  return bytes;
}

}  // namespace ranklab
