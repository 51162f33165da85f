#include "core/plan/layer_memory.h"

#include <algorithm>

#include "core/plan/token_spread.h"

namespace ranklab {
namespace {

// Between B and W: the inputs of the products, as far as they are not computed again from what another one keeps, and
// the gradients of their outputs.
LayerMemory grouped_attention(const StepShape& s) {
  const int64_t out = s.tokens() * s.query_width(), log_sum_exp = s.tokens() * s.heads();
  const int64_t qkv = s.tokens() * s.qkv_width(), again = out + log_sum_exp;
  const bool keeps = !s.recompute.selective();
  // Gradients on their way to the ranks that share a head: of the head, and of what this rank projected.
  const int64_t shared = s.dims.kv_copies > 1 ? s.tokens() * (2 * s.model.head_dim() + s.projected_qkv_width()) : 0;
  // The norm of queries and keys keeps its input beside what attention keeps of its output.
  const int64_t norm = s.model.qk_norm ? qkv + log_sum_exp + s.tokens() * s.kv_heads() : 0;
  // Those of q, k and v, of which groups come once for each of their heads.
  const int64_t softmax_gradients = s.heads() == s.kv_heads() ? qkv : 5 * out;
  return {.kept = qkv + norm + (keeps ? again : 0),
          .deferred = s.stream() + out + qkv,
          .row_gradients = s.tokens() * s.model.hidden_size,
          .temporary = shared + (keeps ? 0 : again + 2 * qkv + softmax_gradients + 2 * out),
          .at_attention = shared + norm + qkv + softmax_gradients + 2 * out};
}

// Keys and values are put together again in backward from what the projections gave.
LayerMemory latent_attention(const StepShape& s) {
  const MlaConfig& m = s.model.mla;
  const int64_t value = s.heads() * m.v_head_dim, up = s.heads() * (m.query_head_dim() + m.qk_head_dim + m.v_head_dim);
  const int64_t compressed = m.q_lora_rank + m.kv_lora_rank + m.qk_pos_emb_head_dim;
  const int64_t norms = norm_elements(s, m.kv_lora_rank) + (m.q_lora_rank > 0 ? norm_elements(s, m.q_lora_rank) : 0);
  const bool keeps = !s.recompute.selective();
  return {.kept = norms + s.tokens() * (up + m.qk_pos_emb_head_dim + (keeps ? value + s.heads() : 0)),
          .deferred = s.stream() + 2 * s.local_tokens() * compressed + s.tokens() * (value + up),
          .row_gradients = s.tokens() * s.model.hidden_size,
          .temporary = 0,
          .at_attention = 2 * s.tokens() * up + 2 * s.stream()};
}

// The backward of an MLP holds the gradients of the activation's output and of its input; then, with the input's kept
// values gone, the up product's.
LayerMemory mlp(const StepShape& s, int64_t ffn) {
  const int64_t up = s.tokens() * s.up_width(ffn);
  return {.kept = up,
          .deferred = s.stream() + 2 * up,
          .row_gradients = s.tokens() * s.model.hidden_size,
          .temporary = s.tokens() * ffn + up,
          .at_products = s.tokens() * s.model.hidden_size + 3 * s.stream()};
}

// Where tokens travel packed, the backward of their way holds several gradients of the same rows.
int64_t packed_temporary(const StepShape& s) {
  const int64_t ep = s.dims.ep, nodes = ep / s.ep_members_in_node();
  const bool collects = s.moe_dispatcher == "allgather", hops_twice = s.moe_dispatcher == "dedup";
  if (s.moe_dispatcher == "alltoall" || ep == 1) return 0;
  const int64_t arrived = collects ? ep * s.local_tokens() : token_copies(s, ep);
  int64_t rows = 3 * arrived;
  if (!collects) rows += 4 * arrived;
  if (hops_twice && nodes > 1) rows += 4 * token_copies(s, nodes);
  return rows * packed_width(s);
}

// The rows that arrive, the up product of them, and the outputs by slot, which the weights' gradients need. The
// router keeps the norm's output and a few matrices of scores.
LayerMemory experts(const StepShape& s) {
  const MoeConfig& m = s.model.moe;
  const int64_t ffn = s.expert_ffn_width(), up = s.up_width(ffn);
  const int64_t arrived = s.routed_tokens() * s.dims.etp, scores = s.local_tokens() * m.num_experts;
  const int64_t own = s.routed_tokens() * s.model.hidden_size;
  const int64_t rows = arrived * (s.model.hidden_size + up);
  const int64_t products = arrived * (up + ffn) + own;
  return {.kept = s.stream() + 4 * scores + rows + own,
          .deferred = rows + arrived * (up + s.model.hidden_size),
          .row_gradients = 0,
          .temporary = std::max(products, packed_temporary(s)) + 2 * s.stream(),
          .at_products = products};
}

}  // namespace

LayerMemory& LayerMemory::operator+=(const LayerMemory& other) {
  kept += other.kept;
  deferred += other.deferred;
  row_gradients += other.row_gradients;
  temporary = std::max(temporary, other.temporary);
  at_products = std::max(at_products, other.at_products);
  at_attention = std::max(at_attention, other.at_attention);
  return *this;
}

LayerMemory LayerMemory::again(int64_t input) const {
  LayerMemory out = *this;
  out.kept = input;
  out.temporary = kept + temporary + input;  // the input once as what is kept, once as the first norm makes it
  out.at_products = kept + at_products;
  return out;
}

int64_t norm_elements(const StepShape& s, int64_t width) {
  const bool again = s.model.norm == NormKind::kRmsNorm;
  return s.local_tokens() * ((again ? 1 : 2) * width + (again ? 1 : 2));
}

int64_t dropout_elements(const StepShape& s) { return s.model.dropout > 0 ? s.stream() : 0; }

LayerMemory layer_memory(const StepShape& s, int64_t layer) {
  LayerMemory rest;
  if (s.model.is_moe_layer(layer)) rest += experts(s);
  const int64_t ffn = s.model.is_moe_layer(layer) ? s.shared_ffn_width() : s.ffn_width();
  if (ffn > 0) rest += mlp(s, ffn);
  if (s.model.is_moe_layer(layer) && s.model.moe.shared_gate)
    rest.kept += s.stream() + 2 * s.local_tokens();  // the outputs that the gate scales, and itself
  LayerMemory memory = s.model.mla.enabled() ? latent_attention(s) : grouped_attention(s);
  memory.temporary = std::max<int64_t>(memory.temporary - rest.kept, 0);  // backward has passed the rest by then
  memory += rest;
  memory.kept += 2 * (norm_elements(s, s.model.hidden_size) + dropout_elements(s));
  return memory;
}

}  // namespace ranklab
