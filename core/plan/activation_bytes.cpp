#include "core/plan/activation_bytes.h"

#include <algorithm>

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

int64_t layer_elements(const StepShape& s) {
  const int64_t attention_out = s.tokens() * s.model.hidden_size / s.dims.tp;
  const int64_t log_sum_exp = s.tokens() * s.model.num_attention_heads / s.dims.tp;
  const int64_t attention = s.tokens() * s.qkv_width() + attention_out + log_sum_exp;
  return 2 * (norm_elements(s) + dropout_elements(s)) + attention + s.tokens() * s.up_width();
}

// The loss holds the logits twice (unsplit, its backward three times). The backward of the last MLP holds the
// activation's output again, its gradient and its input's gradient, beside the residual stream's gradient.
int64_t temporary_elements(const StepShape& s) {
  const int64_t logits = s.tokens() * s.vocab_width();
  const int64_t stream = s.local_tokens() * s.model.hidden_size;
  const int64_t loss = (s.dims.tp == 1 ? 3 : 2) * logits + stream;
  const int64_t head = logits + s.tokens() * s.model.hidden_size + 2 * stream;
  const int64_t mlp = s.tokens() * (s.ffn_width() + s.up_width()) + 2 * stream;
  return std::max({loss, head, mlp});
}

}  // namespace

ActivationBytes estimate_activations(const StepShape& s) {
  const int64_t element = s.element_bytes();
  const int64_t rope = s.model.position == PositionKind::kRope ? s.model.seq_length * s.model.head_dim() : 0;
  ActivationBytes bytes;
  bytes.per_layer = layer_elements(s) * element;
  bytes.layers = bytes.per_layer * s.model.num_layers;
  bytes.ends = (norm_elements(s) + dropout_elements(s) + rope) * element;
  bytes.temporary = temporary_elements(s) * element;
  bytes.gathered = s.sharded_sequence() ? s.tokens() * s.model.hidden_size * element : 0;
  return bytes;
}

}  // namespace ranklab
