// The kernels and collectives of one action on one stage: F, BW, or B and W apart as core/parallel/linear.h splits them
// (the product for the weight, and what only it needs: the gathered or computed-again input, the bias). Thread rule:
// one thread.
#pragma once
#include <functional>

#include "core/plan/step_shape.h"
#include "core/plan/step_walk.h"

namespace ranklab {

class StageWalk {
 public:
  // Told when the gradients of a part of the stage are complete, latest made first.
  using Arrived = std::function<void(ParameterPart)>;

  // `part`: of a chain of shape.num_stages(). The visitor outlives this.
  StageWalk(const StepShape& shape, int part, StepVisitor& visitor, Arrived arrived = {});

  void forward();
  void backward();     // BW
  void input_grad();   // B
  void weight_grad();  // W

 private:
  enum class Half { kWhole, kInput, kWeight };
  bool input_half() const { return half_ != Half::kWeight; }
  bool weight_half() const { return half_ != Half::kInput; }

  void kernel(double bytes, int kernels = 1) { v_.compute(0, bytes, kernels); }
  void matmul(int64_t rows, int64_t inner, int64_t columns);
  int post(Verb verb, int64_t bytes) { return v_.post(Axis::kTp, verb, bytes); }
  void call(Axis axis, Verb verb, int64_t bytes) { v_.wait(v_.post(axis, verb, bytes)); }
  void arrive(ParameterPart part);
  int64_t all_positions() const { return tokens_ * hidden_ * s_.element_bytes(); }
  bool split() const { return s_.dims.tp > 1; }
  bool sharded() const { return s_.sharded_sequence(); }
  bool keeps_norm_recipe() const { return s_.model.norm == NormKind::kRmsNorm; }
  bool swiglu() const { return s_.model.activation == ActivationKind::kSwiGlu; }
  double up_bytes() const { return e_ * static_cast<double>(tokens_ * s_.up_width()); }
  void gather();
  void reduce();

  void column_forward(int64_t out, bool bias);
  void column_backward(int64_t out, bool bias);
  void column_input_grad(int64_t out);
  void column_weight_grad(int64_t out, bool bias);
  void row_forward(int64_t in, bool bias);
  void row_backward(int64_t in, bool bias);
  void weight_product(int64_t in, int64_t out);
  void norm_forward(bool adds_branch) { kernel((adds_branch ? 4 : 2) * stream_bytes_); }
  void norm_backward(bool has_residual);
  void dropout();
  void attention(double flops_factor, double passes);
  void activation_forward() { kernel((swiglu() ? 1.5 : 2) * up_bytes()); }
  void activation_backward() { kernel((swiglu() ? 2.5 : 3) * up_bytes()); }
  void mlp_forward();
  void mlp_backward();
  void experts(int products);
  void embedding_forward();
  void embedding_backward();
  void loss_forward();
  void loss_backward();
  void head_backward();
  void layer_backward(bool first_norm_has_residual);
  void run_backward(Half half);

  const StepShape& s_;
  int part_;
  StepVisitor& v_;
  Arrived arrived_;
  Half half_ = Half::kWhole;
  double e_;
  int64_t tokens_, local_, hidden_;
  double stream_bytes_;  // of the residual stream on this rank
};

}  // namespace ranklab
