#include "core/plan/stage_walk.h"

#include <utility>

#include "core/plan/planned_axes.h"

namespace ranklab {
namespace {

constexpr int64_t kIndexBytes = 8;  // of a token

}  // namespace

StageWalk::StageWalk(const StepShape& shape, int part, StepVisitor& visitor, Arrived arrived)
    : s_(shape),
      part_(part),
      v_(visitor),
      arrived_(std::move(arrived)),
      e_(static_cast<double>(shape.element_bytes())),
      tokens_(shape.tokens()),
      local_(shape.local_tokens()),
      hidden_(shape.model.hidden_size),
      stream_bytes_(e_ * static_cast<double>(local_ * hidden_)) {}

void StageWalk::backward() { run_backward(Half::kWhole); }
void StageWalk::input_grad() { run_backward(Half::kInput); }
void StageWalk::weight_grad() { run_backward(Half::kWeight); }

void StageWalk::matmul(int64_t rows, int64_t inner, int64_t columns) {
  const auto m = static_cast<double>(rows), k = static_cast<double>(inner), n = static_cast<double>(columns);
  v_.compute(2 * m * k * n, e_ * (m * k + k * n + m * n), 1);
}

void StageWalk::arrive(ParameterPart part) {
  if (weight_half() && arrived_) arrived_(part);
}

void StageWalk::gather() {
  if (sharded()) call(Axis::kTp, Verb::kAllGather, all_positions());
}

// Partial sums of all positions become this rank's share of their sum.
void StageWalk::reduce() {
  if (split()) call(Axis::kTp, sharded() ? Verb::kReduceScatter : Verb::kAllReduce, all_positions());
}

// --- layers: out features are this rank's for a column, in features are this rank's for a row ---
void StageWalk::column_forward(int64_t out, bool bias) {
  gather();
  matmul(tokens_, hidden_, out);
  if (bias) kernel(2 * e_ * static_cast<double>(tokens_ * out));
}

void StageWalk::column_input_grad(int64_t out) {
  matmul(tokens_, out, hidden_);
  reduce();
}

void StageWalk::column_weight_grad(int64_t out, bool bias) {
  if (keeps_norm_recipe()) kernel(2 * stream_bytes_);
  gather();
  weight_product(hidden_, out);
  if (bias) kernel(e_ * static_cast<double>(tokens_ * out));
}

void StageWalk::column_backward(int64_t out, bool bias) {
  if (half_ == Half::kInput) return column_input_grad(out);
  if (half_ == Half::kWeight) return column_weight_grad(out, bias);
  if (keeps_norm_recipe()) kernel(2 * stream_bytes_);
  const int gathering = sharded() ? post(Verb::kAllGather, all_positions()) : -1;
  matmul(tokens_, out, hidden_);
  if (gathering >= 0) v_.wait(gathering);
  const int reducing = split() ? post(sharded() ? Verb::kReduceScatter : Verb::kAllReduce, all_positions()) : -1;
  weight_product(hidden_, out);
  if (bias) kernel(e_ * static_cast<double>(tokens_ * out));
  if (reducing >= 0) v_.wait(reducing);
}

void StageWalk::row_forward(int64_t in, bool bias) {
  matmul(tokens_, in, hidden_);
  reduce();
  if (bias) kernel(2 * stream_bytes_);
}

void StageWalk::row_backward(int64_t in, bool bias) {
  if (input_half()) {
    gather();
    matmul(tokens_, hidden_, in);
  }
  if (!weight_half()) return;
  weight_product(in, hidden_);
  if (bias) kernel(stream_bytes_);
}

void StageWalk::weight_product(int64_t in, int64_t out) {
  matmul(out, tokens_, in);
  if (in < out) kernel(2 * e_ * static_cast<double>(in * out));  // computed as its transpose, then copied
}

void StageWalk::norm_backward(bool has_residual) {
  if (!input_half()) return;
  if (keeps_norm_recipe()) return kernel((has_residual ? 4 : 3) * stream_bytes_);
  kernel(3 * stream_bytes_);
  if (has_residual) kernel(3 * stream_bytes_);
}

void StageWalk::dropout() {
  if (input_half() && s_.model.dropout > 0) kernel(3 * stream_bytes_);
}

void StageWalk::attention(double flops_factor, double passes) {
  const auto seq = static_cast<double>(s_.model.seq_length);
  const double flops = 2 * seq * static_cast<double>(tokens_ * hidden_ / s_.dims.tp);
  v_.compute(flops_factor * flops, passes * e_ * static_cast<double>(tokens_ * s_.qkv_width()), 1);
}

void StageWalk::mlp_forward() {
  if (s_.num_experts > 0) return experts(1);
  column_forward(s_.up_width(), s_.model.add_bias);
  activation_forward();
  row_forward(s_.ffn_width(), s_.model.add_bias);
}

void StageWalk::mlp_backward() {
  if (s_.num_experts > 0) {
    if (weight_half()) experts(2);
    arrive(ParameterPart::kDown);
    return arrive(ParameterPart::kUp);
  }
  if (weight_half()) activation_forward();  // computed again instead of kept
  row_backward(s_.ffn_width(), s_.model.add_bias);
  arrive(ParameterPart::kDown);
  if (input_half()) activation_backward();
  column_backward(s_.up_width(), s_.model.add_bias);
  arrive(ParameterPart::kUp);
}

void StageWalk::experts(int products) {
  expert_exchange(s_, v_);
  const int64_t routed = local_ * s_.router_topk * s_.dims.etp;
  for (int i = 0; i < products; ++i) {
    matmul(routed, hidden_, s_.up_width() * s_.dims.tp / s_.dims.etp);
    matmul(routed, s_.model.ffn_hidden_size / s_.dims.etp, hidden_);
  }
}

void StageWalk::forward() {
  half_ = Half::kWhole;
  const bool bias = s_.model.add_bias;
  if (s_.is_first(part_)) embedding_forward();
  for (int64_t layer = 0; layer < s_.layers(part_); ++layer) {
    norm_forward(layer > 0 || !s_.is_first(part_));
    column_forward(s_.qkv_width(), bias);
    attention(1, 2);
    ring_attention_forward(s_, v_);
    row_forward(hidden_ / s_.dims.tp, bias);
    dropout();
    norm_forward(true);
    mlp_forward();
    dropout();
  }
  if (!s_.is_last(part_)) return;
  norm_forward(true);
  column_forward(s_.vocab_width(), false);
  loss_forward();
}

void StageWalk::run_backward(Half half) {
  half_ = half;
  if (s_.is_last(part_)) head_backward();
  for (int64_t layer = s_.layers(part_); layer-- > 0;) layer_backward(layer > 0);
  if (!s_.is_first(part_)) return;
  if (input_half()) {
    kernel(3 * stream_bytes_);  // the first norm's input is the residual stream, too: two gradients are added
    embedding_backward();
  }
  arrive(ParameterPart::kEmbedding);
}

void StageWalk::head_backward() {
  if (input_half()) loss_backward();
  column_backward(s_.vocab_width(), false);
  if (!s_.model.tie_embeddings || s_.num_stages() > 1) arrive(ParameterPart::kHead);
  norm_backward(false);
  arrive(ParameterPart::kFinalNorm);
}

void StageWalk::layer_backward(bool first_norm_has_residual) {
  const bool bias = s_.model.add_bias;
  dropout();
  mlp_backward();
  norm_backward(true);
  arrive(ParameterPart::kMlpNorm);
  dropout();
  row_backward(hidden_ / s_.dims.tp, bias);
  arrive(ParameterPart::kOut);
  if (input_half()) {
    attention(2.5, 4);
    ring_attention_backward(s_, v_);
  }
  column_backward(s_.qkv_width(), bias);
  arrive(ParameterPart::kQkv);
  norm_backward(first_norm_has_residual);
  arrive(ParameterPart::kAttentionNorm);
}

void StageWalk::embedding_forward() {
  const auto index = static_cast<double>(tokens_ * kIndexBytes);
  const double rows = e_ * static_cast<double>(tokens_ * hidden_);
  kernel(index + 2 * rows);
  if (split()) {
    kernel(12 * index, 8);  // which tokens are this rank's
    kernel(2 * rows);       // zeros for the others
    if (!sharded()) kernel(2 * rows);
    reduce();
  }
  if (s_.model.position == PositionKind::kLearned) kernel(2.5 * stream_bytes_);
  dropout();
}

void StageWalk::embedding_backward() {
  dropout();
  if (s_.model.position == PositionKind::kLearned) kernel(2 * stream_bytes_, 3);
  gather();
  kernel(e_ * static_cast<double>((tokens_ + s_.vocab_width()) * hidden_));
}

// Passes over the logits, and the kernels on one number a token beside them.
void StageWalk::loss_forward() {
  const double logits = e_ * static_cast<double>(tokens_ * s_.vocab_width());
  const auto index = static_cast<double>(tokens_ * kIndexBytes);
  if (!split()) return kernel(3 * logits, 3);
  kernel(8 * logits, 5);
  kernel(24 * index, 12);
  const int64_t statistics = 3 * tokens_ * s_.dims.tp * s_.element_bytes();
  call(Axis::kTp, Verb::kAllGather, statistics);
  kernel(30 * index, 18);
}

void StageWalk::loss_backward() {
  const double logits = e_ * static_cast<double>(tokens_ * s_.vocab_width());
  if (!split()) return kernel(5 * logits, 4);
  kernel(2 * logits, 2);
  kernel(8 * static_cast<double>(tokens_ * kIndexBytes), 6);
}

}  // namespace ranklab
