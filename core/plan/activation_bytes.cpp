#include "core/plan/activation_bytes.h"

#include <algorithm>

#include "core/pipeline/verify.h"

namespace ranklab {
namespace {

bool recomputes_norm(const StepShape& s) { return s.model.norm == NormKind::kRmsNorm; }

// Elements that one norm and the column-parallel layer behind it keep.
int64_t norm_elements(const StepShape& s) {
  const int64_t stream = s.local_tokens() * s.model.hidden_size;
  const int64_t row_statistics = (recomputes_norm(s) ? 1 : 2) * s.local_tokens();
  return stream + row_statistics + (recomputes_norm(s) ? 0 : stream);
}

int64_t dropout_elements(const StepShape& s) {
  return s.model.dropout > 0 ? s.local_tokens() * s.model.hidden_size : 0;
}

// Between B and W: the inputs of the four products, as far as they are not computed again from what another one keeps,
// and the gradients of their outputs. Those of row-parallel layers are needed at all positions.
int64_t deferred_elements(const StepShape& s) {
  const int64_t stream = s.local_tokens() * s.model.hidden_size;
  const int64_t inputs = 2 * stream + s.tokens() * s.model.hidden_size / s.dims.tp + s.tokens() * s.up_width();
  return inputs + s.tokens() * (s.qkv_width() + s.up_width());
}
int64_t deferred_row_gradients(const StepShape& s) { return 2 * s.tokens() * s.model.hidden_size; }

int64_t layer_elements(const StepShape& s) {
  const int64_t attention_out = s.tokens() * s.model.hidden_size / s.dims.tp;
  const int64_t log_sum_exp = s.tokens() * s.model.num_attention_heads / s.dims.tp;
  const int64_t attention = s.tokens() * s.qkv_width() + attention_out + log_sum_exp;
  return 2 * (norm_elements(s) + dropout_elements(s)) + attention + s.tokens() * s.up_width();
}

// The backward of the last MLP holds the activation's output again, its gradient and its input's gradient, beside the
// residual stream's gradient.
int64_t mlp_temporary(const StepShape& s) {
  const int64_t stream = s.local_tokens() * s.model.hidden_size;
  return s.tokens() * (s.ffn_width() + s.up_width()) + 2 * stream;
}

// The loss holds the logits twice (unsplit, its backward three times).
int64_t loss_temporary(const StepShape& s) {
  const int64_t logits = s.tokens() * s.vocab_width();
  const int64_t stream = s.local_tokens() * s.model.hidden_size;
  const int64_t loss = (s.dims.tp == 1 ? 3 : 2) * logits + stream;
  const int64_t head = logits + s.tokens() * s.model.hidden_size + 2 * stream;
  return std::max(loss, head);
}

// The stages of a pipeline rank, the largest as if all were like it.
struct LargestStage {
  int64_t layers = 0;
  int64_t boundaries = 0;  // tensors that came from another stage or go to one, kept until B
  bool has_last = false;
};

LargestStage largest_stage(const StepShape& s, const Schedule& schedule, int pp_rank) {
  LargestStage out;
  for (const int stage : schedule.stages_of(pp_rank)) {
    const int64_t ends = (schedule.is_first(stage) ? 1 : 0) + (schedule.is_last(stage) ? 1 : 0);
    out.layers = std::max(out.layers, s.layers(schedule.part(stage)));
    out.boundaries = std::max(out.boundaries, 2 - ends);
    out.has_last = out.has_last || schedule.is_last(stage);
  }
  return out;
}

}  // namespace

ActivationBytes estimate_activations(const StepShape& s, const Schedule& schedule, int pp_rank) {
  const int64_t element = s.element_bytes();
  const int64_t rope = s.model.position == PositionKind::kRope ? s.model.seq_length * s.model.head_dim() : 0;
  const LargestStage stage = largest_stage(s, schedule, pp_rank);
  const auto layers = static_cast<double>(stage.layers);
  ActivationBytes bytes;
  bytes.per_layer = layer_elements(s) * element;
  bytes.per_layer_deferred = (deferred_elements(s) + (s.sharded_sequence() ? 0 : deferred_row_gradients(s))) * element;
  const double whole =
      layers * static_cast<double>(bytes.per_layer) + static_cast<double>(stage.boundaries * s.boundary_bytes());
  const double deferred = layers * static_cast<double>(bytes.per_layer_deferred);
  const StageMemory memory = stage_memory(schedule, pp_rank, deferred / whole);
  bytes.microbatches = memory.peak_memory / schedule.stage_share();
  bytes.layers = static_cast<int64_t>(bytes.microbatches * whole);
  bytes.ends = (norm_elements(s) + dropout_elements(s) + rope) * element;
  bytes.temporary = std::max(mlp_temporary(s), stage.has_last ? loss_temporary(s) : 0) * element;
  if (s.sharded_sequence()) {
    const double row_gradients = memory.peak_deferred * layers * static_cast<double>(deferred_row_gradients(s));
    bytes.gathered = std::max(static_cast<int64_t>(row_gradients), s.tokens() * s.model.hidden_size) * element;
  }
  return bytes;
}

}  // namespace ranklab
