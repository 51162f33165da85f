#include "core/plan/router_walk.h"

namespace ranklab {
namespace {

constexpr int64_t kIntegerBytes = 8;

const MoeConfig& moe(const LayerWalk& w) { return w.shape().model.moe; }
double scores(const LayerWalk& w) { return w.rows(w.local_tokens(), moe(w).num_experts); }
double choices(const LayerWalk& w) { return w.rows(w.local_tokens(), moe(w).topk); }
bool is_grouped(const MoeConfig& m) { return m.group_topk < m.num_groups; }
bool is_scaled(const MoeConfig& m) { return m.scaling_factor != 1.0; }
bool is_sigmoid(const MoeConfig& m) { return m.score == RouterScore::kSigmoid; }
bool is_balanced(const MoeConfig& m) { return m.balancing != LoadBalancing::kNone; }

void weights(LayerWalk& w) {
  const MoeConfig& m = moe(w);
  w.kernel(scores(w) + 2 * choices(w), 1);
  if (m.normalizes()) w.kernel(5 * choices(w), 3);
  if (is_scaled(m)) w.kernel(2 * choices(w), 1);
}

void choice(LayerWalk& w) {
  const MoeConfig& m = moe(w);
  w.kernel((m.expert_bias ? 4 : 2) * scores(w), m.expert_bias ? 2 : 1);
  if (is_grouped(m)) w.kernel(13 * scores(w), 8);
  w.kernel(4 * scores(w) + 4 * choices(w), 2);  // a sort, and the best of it
  weights(w);
  if (!m.force_balance) return;
  w.kernel(10 * choices(w), 8);
  weights(w);
}

void capacity(LayerWalk& w) {
  const int64_t count = w.tokens() * moe(w).topk;
  if (w.sharded()) {
    w.call(Axis::kTp, Verb::kAllGather, count * kIntegerBytes);
    w.call(Axis::kTp, Verb::kAllGather, count * w.shape().element_bytes());
  }
  w.kernel(30.0 * static_cast<double>(count * kIntegerBytes), 16);
}

void balance(LayerWalk& w) {
  const MoeConfig& m = moe(w);
  const bool by_sequence = m.balancing == LoadBalancing::kSeqAuxLoss;
  if (by_sequence) w.kernel(8 * choices(w), 4);
  const int64_t counts = (by_sequence ? w.shape().micro_batch_size : 1) * m.num_experts * kIntegerBytes;
  w.kernel(2 * choices(w), 1);
  if (w.sharded()) w.call(Axis::kTp, Verb::kAllReduce, counts);
  if (m.balancing == LoadBalancing::kGlobalAuxLoss && w.shape().dims.dp > 1)
    w.call(Axis::kDp, Verb::kAllReduce, counts);
  w.kernel(2.0 * static_cast<double>(counts), 2);
  if (is_sigmoid(m)) w.kernel(3 * scores(w), 2);
  w.kernel(3 * scores(w), 3);
}

}  // namespace

void router_forward(LayerWalk& w) {
  const MoeConfig& m = moe(w);
  w.matmul(w.local_tokens(), w.shape().model.hidden_size, m.num_experts);
  choice(w);
  if (m.capacity_factor > 0) capacity(w);
  if (is_balanced(m)) balance(w);
  if (m.z_loss_coeff > 0) w.kernel(scores(w), 4);
}

void router_backward(LayerWalk& w) {
  const MoeConfig& m = moe(w);
  if (w.input_half()) {
    if (is_balanced(m)) w.kernel((is_sigmoid(m) ? 14 : 1) * scores(w), is_sigmoid(m) ? 10 : 3);
    if (m.z_loss_coeff > 0) w.kernel(4 * scores(w), 6);
    if (is_scaled(m)) w.kernel(2 * choices(w), 1);
    if (m.normalizes()) w.kernel(15 * choices(w), 7);
    w.kernel(2 * scores(w), 2);
    if (is_balanced(m)) w.kernel(3 * scores(w), 1);
    w.kernel(3 * scores(w), 1);
    w.matmul(w.local_tokens(), m.num_experts, w.shape().model.hidden_size);
    w.matmul(m.num_experts, w.local_tokens(), w.shape().model.hidden_size);
  }
  w.arrive(ModulePart::kRouter);
}

}  // namespace ranklab
