#include "core/plan/attention_walk.h"

#include "core/model/attention_span.h"
#include "core/plan/planned_axes.h"

namespace ranklab {
namespace {

constexpr double kBackwardFlops = 2.5;  // flash attention computes the scores again

// Causal: half of the square, less outside a window. `widths`: of a query head and a value head together.
double softmax_flops(const LayerWalk& w, int64_t widths) {
  const StepShape& s = w.shape();
  return attention_span(s.model.seq_length, s.model.window_size) * static_cast<double>(w.tokens() * s.heads() * widths);
}

double qkv_bytes(const LayerWalk& w) { return w.rows(w.tokens(), w.shape().qkv_width()); }

// Selective recomputation: once, before whichever half comes first.
template <typename Forward>
void softmax_again(LayerWalk& w, Forward forward) {
  if (!w.shape().recompute.selective() || !w.input_half()) return;
  w.visitor().set_recomputing(true);
  forward(w);
  w.visitor().set_recomputing(false);
}

void grouped_softmax(LayerWalk& w) {
  w.visitor().compute(softmax_flops(w, 2 * w.shape().model.head_dim()), 2 * qkv_bytes(w), 1);
  ring_attention_forward(w.shape(), w.visitor());
}

int copies(const LayerWalk& w) { return w.shape().dims.kv_copies; }

// core/parallel/shared_heads.cpp: a copy of this rank's part, the parts of all in order, and beside the queries.
double shared_bytes(const LayerWalk& w) { return w.rows(w.tokens(), 2 * w.shape().model.head_dim()); }
void gather_key_values(LayerWalk& w) {
  if (copies(w) == 1) return;
  w.kernel(2 * shared_bytes(w) / copies(w));
  w.call(Axis::kKv, Verb::kAllGather, static_cast<int64_t>(shared_bytes(w)));
  w.kernel(2 * shared_bytes(w));
  w.kernel(2 * qkv_bytes(w));
}
void scatter_key_value_gradients(LayerWalk& w) {
  if (copies(w) == 1) return;
  w.kernel(2 * shared_bytes(w));
  w.call(Axis::kKv, Verb::kReduceScatter, static_cast<int64_t>(shared_bytes(w)));
  w.kernel(2 * w.rows(w.tokens(), w.shape().projected_qkv_width()));
}

void grouped_forward(LayerWalk& w) {
  const StepShape& s = w.shape();
  w.column_forward(s.model.hidden_size, s.projected_qkv_width(), s.model.has_qkv_bias());
  gather_key_values(w);
  if (s.model.qk_norm) w.kernel(2 * qkv_bytes(w));
  grouped_softmax(w);
  w.row_forward(s.query_width(), s.model.has_attention_out_bias());
}

void grouped_backward(LayerWalk& w) {
  const StepShape& s = w.shape();
  softmax_again(w, grouped_softmax);
  w.row_backward(s.query_width(), s.model.has_attention_out_bias());
  w.arrive(ModulePart::kAttentionOut);
  if (w.input_half()) {
    w.visitor().compute(kBackwardFlops * softmax_flops(w, 2 * s.model.head_dim()), 4 * qkv_bytes(w), 1);
    ring_attention_backward(s, w.visitor());
    if (s.model.qk_norm) w.kernel(3 * qkv_bytes(w));
  }
  if (w.input_half()) scatter_key_value_gradients(w);
  w.column_backward(s.model.hidden_size, s.projected_qkv_width(), s.model.has_qkv_bias());
  w.arrive(ModulePart::kAttentionIn);
}

struct LatentWidths {
  explicit LatentWidths(const StepShape& s)
      : hidden(s.model.hidden_size),
        q_lora(s.model.mla.q_lora_rank),
        kv_lora(s.model.mla.kv_lora_rank),
        rope(s.model.mla.qk_pos_emb_head_dim),
        head(s.model.mla.query_head_dim() + s.model.mla.v_head_dim),
        backward_head(3 * s.model.mla.query_head_dim() + 2 * s.model.mla.v_head_dim),
        query(s.heads() * s.model.mla.query_head_dim()),
        key_value(s.heads() * (s.model.mla.qk_head_dim + s.model.mla.v_head_dim)),
        value(s.heads() * s.model.mla.v_head_dim) {}
  int64_t hidden, q_lora, kv_lora, rope, head, backward_head, query, key_value, value;
};

// Queries, keys, values and outputs of all heads.
double latent_bytes(const LayerWalk& w, const LatentWidths& n) {
  return w.rows(w.tokens(), n.query + n.key_value + n.value);
}

// Of the compressed vector and the position part of the key, which one product makes together.
void copy_parts(LayerWalk& w, const LatentWidths& n) {
  w.kernel(2 * w.rows(w.local_tokens(), n.kv_lora));
  w.kernel(2 * w.rows(w.local_tokens(), n.rope));
}

void latent_softmax(LayerWalk& w) {
  const LatentWidths n(w.shape());
  w.visitor().compute(softmax_flops(w, n.head), latent_bytes(w, n), 1);
  ring_attention_forward(w.shape(), w.visitor());
}

void latent_forward(LayerWalk& w) {
  const LatentWidths n(w.shape());
  if (n.q_lora > 0) {
    w.replicated_forward(n.hidden, n.q_lora);
    w.norm_forward(n.q_lora, false);
    w.column_forward(n.q_lora, n.query, false);
  } else {
    w.column_forward(n.hidden, n.query, false);
  }
  w.replicated_forward(n.hidden, n.kv_lora + n.rope);
  copy_parts(w, n);
  w.norm_forward(n.kv_lora, false);
  w.column_forward(n.kv_lora, n.key_value, false);
  w.gather(n.rope);
  latent_softmax(w);
  w.row_forward(n.value, false);
}

void latent_backward(LayerWalk& w) {
  const LatentWidths n(w.shape());
  softmax_again(w, latent_softmax);
  w.row_backward(n.value, false);
  w.arrive(ModulePart::kAttentionOut);
  if (w.input_half()) {
    w.visitor().compute(softmax_flops(w, n.backward_head), 3 * latent_bytes(w, n), 1);
    ring_attention_backward(w.shape(), w.visitor());
    w.reduce(n.rope);
  }
  w.column_backward(n.kv_lora, n.key_value, false);
  w.norm_backward(n.kv_lora, false);
  if (w.input_half()) w.kernel(2 * w.rows(w.local_tokens(), n.kv_lora + n.rope));
  w.replicated_backward(n.hidden, n.kv_lora + n.rope);
  if (n.q_lora > 0) {
    w.column_backward(n.q_lora, n.query, false);
    w.norm_backward(n.q_lora, false);
    w.replicated_backward(n.hidden, n.q_lora);
  } else {
    w.column_backward(n.hidden, n.query, false);
  }
  if (w.input_half()) w.kernel(3 * w.stream_bytes());  // the gradients of the two inputs are added
  w.arrive(ModulePart::kAttentionIn);
}

}  // namespace

void attention_forward(LayerWalk& walk) {
  walk.shape().model.mla.enabled() ? latent_forward(walk) : grouped_forward(walk);
}

void attention_backward(LayerWalk& walk) {
  walk.shape().model.mla.enabled() ? latent_backward(walk) : grouped_backward(walk);
}

}  // namespace ranklab
