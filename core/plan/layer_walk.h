// The kernels and collectives that all layers have in common: products cut over tp, norms, activation functions, each
// forward and backward, or the two halves of a split backward apart, as core/parallel/linear.h splits them (the product
// for the weight, and what only it needs: the gathered or computed-again input, the bias). Thread rule: one thread.
#pragma once
#include <functional>

#include "core/model/module_table.h"
#include "core/plan/product_walk.h"
#include "core/plan/step_shape.h"
#include "core/plan/step_walk.h"

namespace ranklab {

enum class BackwardHalf { kWhole, kInput, kWeight };

class LayerWalk {
 public:
  // Told when the gradients of a part are complete, latest made first.
  using Arrived = std::function<void(ModulePart)>;

  // The shape and the visitor outlive this.
  LayerWalk(const StepShape& shape, StepVisitor& visitor, Arrived arrived);

  const StepShape& shape() const { return s_; }
  StepVisitor& visitor() { return v_; }
  double element_bytes() const { return e_; }
  int64_t tokens() const { return tokens_; }       // of a microbatch
  int64_t local_tokens() const { return local_; }  // this rank's positions of them
  int64_t hidden() const { return s_.model.hidden_size; }
  double stream_bytes() const { return rows(local_, s_.model.hidden_size); }  // of the residual stream on this rank
  double rows(int64_t count, int64_t width) const { return e_ * static_cast<double>(count * width); }
  bool split() const { return s_.dims.tp > 1; }
  bool sharded() const { return s_.sharded_sequence(); }
  bool keeps_norm_recipe() const { return s_.model.norm == NormKind::kRmsNorm; }

  void begin(BackwardHalf half) { half_ = half; }
  bool input_half() const { return half_ != BackwardHalf::kWeight; }
  bool weight_half() const { return half_ != BackwardHalf::kInput; }
  void arrive(ModulePart part);

  void kernel(double bytes, int kernels = 1) { v_.compute(0, bytes, kernels); }
  void matmul(int64_t rows, int64_t inner, int64_t columns);
  ProductWalk& products() { return products_; }
  int post(Axis axis, Verb verb, int64_t bytes) { return v_.post(axis, verb, bytes); }
  void call(Axis axis, Verb verb, int64_t bytes) { v_.wait(v_.post(axis, verb, bytes)); }
  // All positions of rows of this width; or this rank's share of the sum of partial ones. Nothing without tp.
  void gather(int64_t width);
  void reduce(int64_t width);

  // Out features are this rank's for a column, in features are this rank's for a row. The input of a column comes from
  // a norm.
  // The head is quantized apart from the other layers.
  void column_forward(int64_t in, int64_t out, bool bias, bool is_head = false);
  void column_backward(int64_t in, int64_t out, bool bias, bool is_head = false);
  void row_forward(int64_t in, bool bias);
  void row_backward(int64_t in, bool bias);
  // A whole weight on every rank, behind a norm.
  void replicated_forward(int64_t in, int64_t out) { products_.forward(replicated(in, out)); }
  void replicated_backward(int64_t in, int64_t out);
  void norm_forward(int64_t width, bool adds_branch) { kernel((adds_branch ? 4 : 2) * rows(local_, width)); }
  void norm_backward(int64_t width, bool has_residual);
  void dropout();
  // `up`: units that come in, of `count` rows.
  void activation_forward(int64_t count, int64_t up) { kernel((swiglu() ? 1.5 : 2) * rows(count, up)); }
  void activation_backward(int64_t count, int64_t up) { kernel((swiglu() ? 2.5 : 3) * rows(count, up)); }

 private:
  bool swiglu() const { return s_.model.activation == ActivationKind::kSwiGlu; }
  int64_t all_positions(int64_t width) const { return tokens_ * width * s_.element_bytes(); }
  LayerProducts column(int64_t in, int64_t out, bool is_head) const {
    return {tokens_, in, out, ProductSplit::kColumn, !is_head || s_.head_quantized};
  }
  LayerProducts row(int64_t in) const { return {tokens_, in, s_.model.hidden_size, ProductSplit::kRow}; }
  LayerProducts replicated(int64_t in, int64_t out) const { return {local_, in, out, ProductSplit::kReplicated}; }
  void column_input_grad(const LayerProducts& layer);
  void column_weight_grad(const LayerProducts& layer, bool bias);

  const StepShape& s_;
  StepVisitor& v_;
  ProductWalk products_;
  Arrived arrived_;
  BackwardHalf half_ = BackwardHalf::kWhole;
  double e_;
  int64_t tokens_, local_;
};

}  // namespace ranklab
