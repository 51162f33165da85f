#include "core/plan/step_walk.h"

#include "core/plan/planned_axes.h"

namespace ranklab {
namespace {

constexpr int64_t kIndexBytes = 8;  // of a token

// Gradient buckets filling up during the last backward.
class BucketWalk {
 public:
  BucketWalk(const StepShape& shape, int stage, StepVisitor& visitor)
      : shape_(shape), visitor_(visitor), parameters_(planned_parameters(shape, stage)) {
    buckets_ = planned_buckets(shape, parameters_, bucket_of_);
    for (const PlannedBucket& bucket : buckets_) pending_.push_back(bucket.parameters);
    tickets_.assign(buckets_.size(), -1);
  }

  const std::vector<PlannedParameter>& parameters() const { return parameters_; }
  void begin_microbatch(int64_t index) {
    microbatch_ = index;
    next_ = parameters_.size();
  }

  // The gradients of a part are complete: the latest made that have not arrived.
  void arrive(ParameterPart part) {
    for (; next_ > 0 && parameters_[next_ - 1].part == part; --next_) {
      const size_t bucket = bucket_of_[next_ - 1];
      if (microbatch_ + 1 == shape_.num_microbatches) --pending_[bucket];
    }
    if (shape_.overlap_grad_reduce) start_ready();
  }

  void finish() {
    start_ready();
    for (const int ticket : tickets_) {
      if (ticket >= 0) visitor_.wait(ticket);
    }
  }

 private:
  Axis axis(const PlannedBucket& bucket) const {
    if (bucket.is_expert) return Axis::kEdp;
    return shape_.dims.cp > 1 ? Axis::kDpCp : Axis::kDp;
  }
  void start_ready() {
    for (; next_start_ < buckets_.size() && pending_[next_start_] == 0; ++next_start_) {
      const PlannedBucket& bucket = buckets_[next_start_];
      const int64_t bytes = bucket.elements * shape_.element_bytes();
      if (bucket.sum_over_tp) visitor_.wait(visitor_.post(Axis::kTp, Verb::kAllReduce, bytes));
      if (shape_.dims.size(axis(bucket)) > 1) {
        tickets_[next_start_] = visitor_.post(axis(bucket), Verb::kAllReduce, bytes);
      }
    }
  }

  const StepShape& shape_;
  StepVisitor& visitor_;
  std::vector<PlannedParameter> parameters_;
  std::vector<PlannedBucket> buckets_;
  std::vector<size_t> bucket_of_;
  std::vector<int64_t> pending_;
  std::vector<int> tickets_;
  int64_t microbatch_ = 0;
  size_t next_ = 0;
  size_t next_start_ = 0;
};

class StepWalk {
 public:
  StepWalk(const StepShape& shape, int stage, StepVisitor& visitor)
      : s_(shape),
        stage_(stage),
        v_(visitor),
        buckets_(shape, stage, visitor),
        e_(static_cast<double>(shape.element_bytes())),
        tokens_(shape.tokens()),
        local_(shape.local_tokens()),
        hidden_(shape.model.hidden_size),
        stream_bytes_(e_ * static_cast<double>(local_ * hidden_)) {}

  void run() {
    for (int64_t i = 0; i < s_.num_microbatches; ++i) {
      buckets_.begin_microbatch(i);
      forward();
      backward();
    }
    buckets_.finish();
    update();
  }

 private:
  // --- kernels and calls ---
  void kernel(double bytes, int kernels = 1) { v_.compute(0, bytes, kernels); }
  void matmul(int64_t rows, int64_t inner, int64_t columns) {
    const auto m = static_cast<double>(rows), k = static_cast<double>(inner), n = static_cast<double>(columns);
    v_.compute(2 * m * k * n, e_ * (m * k + k * n + m * n), 1);
  }
  int post(Verb verb, int64_t bytes) { return v_.post(Axis::kTp, verb, bytes); }
  void call(Axis axis, Verb verb, int64_t bytes) { v_.wait(v_.post(axis, verb, bytes)); }
  int64_t all_positions() const { return tokens_ * hidden_ * s_.element_bytes(); }
  bool split() const { return s_.dims.tp > 1; }
  bool sharded() const { return s_.sharded_sequence(); }
  bool keeps_norm_recipe() const { return s_.model.norm == NormKind::kRmsNorm; }
  void gather() {
    if (sharded()) call(Axis::kTp, Verb::kAllGather, all_positions());
  }
  // Partial sums of all positions become this rank's share of their sum.
  void reduce() {
    if (split()) call(Axis::kTp, sharded() ? Verb::kReduceScatter : Verb::kAllReduce, all_positions());
  }

  // --- layers: out features are this rank's for a column, in features are this rank's for a row ---
  void column_forward(int64_t out, bool bias) {
    gather();
    matmul(tokens_, hidden_, out);
    if (bias) kernel(2 * e_ * static_cast<double>(tokens_ * out));
  }
  void column_backward(int64_t out, bool bias) {
    if (keeps_norm_recipe()) kernel(2 * stream_bytes_);
    const int gathering = sharded() ? post(Verb::kAllGather, all_positions()) : -1;
    matmul(tokens_, out, hidden_);
    if (gathering >= 0) v_.wait(gathering);
    const int reducing = split() ? post(sharded() ? Verb::kReduceScatter : Verb::kAllReduce, all_positions()) : -1;
    weight_gradient(hidden_, out);
    if (bias) kernel(e_ * static_cast<double>(tokens_ * out));
    if (reducing >= 0) v_.wait(reducing);
  }
  void row_forward(int64_t in, bool bias) {
    matmul(tokens_, in, hidden_);
    reduce();
    if (bias) kernel(2 * stream_bytes_);
  }
  void row_backward(int64_t in, bool bias) {
    gather();
    matmul(tokens_, hidden_, in);
    weight_gradient(in, hidden_);
    if (bias) kernel(stream_bytes_);
  }
  void weight_gradient(int64_t in, int64_t out) {
    matmul(out, tokens_, in);
    if (in < out) kernel(2 * e_ * static_cast<double>(in * out));  // computed as its transpose, then copied
  }
  void norm_forward(bool adds_branch) { kernel((adds_branch ? 4 : 2) * stream_bytes_); }
  void norm_backward(bool has_residual) {
    if (keeps_norm_recipe()) return kernel((has_residual ? 4 : 3) * stream_bytes_);
    kernel(3 * stream_bytes_);
    if (has_residual) kernel(3 * stream_bytes_);
  }
  void dropout() {
    if (s_.model.dropout > 0) kernel(3 * stream_bytes_);
  }
  void attention(double flops_factor, double passes) {
    const auto seq = static_cast<double>(s_.model.seq_length);
    const double flops = 2 * seq * static_cast<double>(tokens_ * hidden_ / s_.dims.tp);
    v_.compute(flops_factor * flops, passes * e_ * static_cast<double>(tokens_ * s_.qkv_width()), 1);
  }
  double up_bytes() const { return e_ * static_cast<double>(tokens_ * s_.up_width()); }
  bool swiglu() const { return s_.model.activation == ActivationKind::kSwiGlu; }
  void activation_forward() { kernel((swiglu() ? 1.5 : 2) * up_bytes()); }
  void activation_backward() { kernel((swiglu() ? 2.5 : 3) * up_bytes()); }

  void mlp_forward() {
    if (s_.num_experts > 0) return experts(1);
    column_forward(s_.up_width(), s_.model.add_bias);
    activation_forward();
    row_forward(s_.ffn_width(), s_.model.add_bias);
  }
  void mlp_backward() {
    if (s_.num_experts > 0) {
      experts(2);
      buckets_.arrive(ParameterPart::kDown);
      return buckets_.arrive(ParameterPart::kUp);
    }
    activation_forward();  // computed again instead of kept
    row_backward(s_.ffn_width(), s_.model.add_bias);
    buckets_.arrive(ParameterPart::kDown);
    activation_backward();
    column_backward(s_.up_width(), s_.model.add_bias);
    buckets_.arrive(ParameterPart::kUp);
  }
  void experts(int products) {
    expert_exchange(s_, v_);
    const int64_t routed = local_ * s_.router_topk * s_.dims.etp;
    for (int i = 0; i < products; ++i) {
      matmul(routed, hidden_, s_.up_width() * s_.dims.tp / s_.dims.etp);
      matmul(routed, s_.model.ffn_hidden_size / s_.dims.etp, hidden_);
    }
  }

  void forward() {
    const bool bias = s_.model.add_bias;
    if (s_.is_first(stage_)) embedding_forward();
    for (int64_t layer = 0; layer < s_.layers(stage_); ++layer) {
      norm_forward(layer > 0 || !s_.is_first(stage_));
      column_forward(s_.qkv_width(), bias);
      attention(1, 2);
      ring_attention_forward(s_, v_);
      row_forward(hidden_ / s_.dims.tp, bias);
      dropout();
      norm_forward(true);
      mlp_forward();
      dropout();
    }
    if (!s_.is_last(stage_)) return send_to_neighbour(v_, Axis::kPp, stage_boundary_bytes(s_), 1);
    norm_forward(true);
    column_forward(s_.vocab_width(), false);
    loss_forward();
  }

  void backward() {
    const bool bias = s_.model.add_bias;
    if (s_.is_last(stage_)) {
      loss_backward();
      column_backward(s_.vocab_width(), false);
      if (!s_.model.tie_embeddings || s_.dims.pp > 1) buckets_.arrive(ParameterPart::kHead);
      norm_backward(false);
      buckets_.arrive(ParameterPart::kFinalNorm);
    }
    for (int64_t layer = s_.layers(stage_); layer-- > 0;) {
      dropout();
      mlp_backward();
      norm_backward(true);
      buckets_.arrive(ParameterPart::kMlpNorm);
      dropout();
      row_backward(hidden_ / s_.dims.tp, bias);
      buckets_.arrive(ParameterPart::kOut);
      attention(2.5, 4);
      ring_attention_backward(s_, v_);
      column_backward(s_.qkv_width(), bias);
      buckets_.arrive(ParameterPart::kQkv);
      norm_backward(layer > 0);
      buckets_.arrive(ParameterPart::kAttentionNorm);
    }
    if (!s_.is_first(stage_)) return send_to_neighbour(v_, Axis::kPp, stage_boundary_bytes(s_), 1);
    kernel(3 * stream_bytes_);  // the first norm's input is the residual stream, too: two gradients are added
    embedding_backward();
    buckets_.arrive(ParameterPart::kEmbedding);
  }

  void embedding_forward() {
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
  void embedding_backward() {
    dropout();
    if (s_.model.position == PositionKind::kLearned) kernel(2 * stream_bytes_, 3);
    gather();
    kernel(e_ * static_cast<double>((tokens_ + s_.vocab_width()) * hidden_));
  }

  // Passes over the logits, and the kernels on one number a token beside them.
  void loss_forward() {
    const double logits = e_ * static_cast<double>(tokens_ * s_.vocab_width());
    const auto index = static_cast<double>(tokens_ * kIndexBytes);
    if (!split()) return kernel(3 * logits, 3);
    kernel(8 * logits, 5);
    kernel(24 * index, 12);
    const int64_t statistics = 3 * tokens_ * s_.dims.tp * s_.element_bytes();
    call(Axis::kTp, Verb::kAllGather, statistics);
    kernel(30 * index, 18);
  }
  void loss_backward() {
    const double logits = e_ * static_cast<double>(tokens_ * s_.vocab_width());
    if (!split()) return kernel(5 * logits, 4);
    kernel(2 * logits, 2);
    kernel(8 * static_cast<double>(tokens_ * kIndexBytes), 6);
  }

  // Global norm, clip, and the optimizer's pass over weight, gradient and moments.
  void update() {
    double bytes = 0;
    for (const PlannedParameter& parameter : buckets_.parameters()) {
      const double one = e_ * static_cast<double>(parameter.elements);
      kernel(one);
      bytes += one;
    }
    constexpr int64_t kNormBytes = 8;
    if (split()) kernel(kNormBytes);
    if (split()) call(Axis::kTp, Verb::kAllReduce, kNormBytes);
    for (const Axis axis : {Axis::kEtp, Axis::kEp}) {
      if (s_.dims.size(axis) > 1) call(axis, Verb::kAllReduce, kNormBytes);
    }
    if (s_.dims.pp > 1) call(Axis::kPp, Verb::kAllReduce, kNormBytes);
    if (s_.clips) kernel(2 * bytes);
    const bool adamw = s_.optimizer == OptimizerKind::kAdamW;
    kernel((adamw ? 7 : 3) * bytes, adamw ? 4 : 2);
  }

  const StepShape& s_;
  int stage_;
  StepVisitor& v_;
  BucketWalk buckets_;
  double e_;
  int64_t tokens_, local_, hidden_;
  double stream_bytes_;  // of the residual stream on this rank
};

}  // namespace

void walk_step(const StepShape& shape, int stage, StepVisitor& visitor) { StepWalk(shape, stage, visitor).run(); }

}  // namespace ranklab
