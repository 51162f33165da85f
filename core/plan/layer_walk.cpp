#include "core/plan/layer_walk.h"

#include <utility>

namespace ranklab {

LayerWalk::LayerWalk(const StepShape& shape, StepVisitor& visitor, Arrived arrived)
    : s_(shape),
      v_(visitor),
      products_(shape, visitor),
      arrived_(std::move(arrived)),
      e_(static_cast<double>(shape.element_bytes())),
      tokens_(shape.tokens()),
      local_(shape.local_tokens()) {}

void LayerWalk::matmul(int64_t rows, int64_t inner, int64_t columns) {
  const auto m = static_cast<double>(rows), k = static_cast<double>(inner), n = static_cast<double>(columns);
  v_.compute(2 * m * k * n, e_ * (m * k + k * n + m * n), 1);
}

void LayerWalk::arrive(ModulePart part) {
  if (weight_half() && arrived_) arrived_(part);
}

void LayerWalk::gather(int64_t width) {
  if (sharded()) call(Axis::kTp, Verb::kAllGather, all_positions(width));
}

void LayerWalk::reduce(int64_t width) {
  if (split()) call(Axis::kTp, sharded() ? Verb::kReduceScatter : Verb::kAllReduce, all_positions(width));
}

void LayerWalk::column_forward(int64_t in, int64_t out, bool bias, bool is_head) {
  gather(in);
  products_.forward(column(in, out, is_head));
  if (bias) kernel(2 * rows(tokens_, out));
}

void LayerWalk::column_input_grad(const LayerProducts& layer) {
  products_.input_grad(layer);
  reduce(layer.in);
}

void LayerWalk::column_weight_grad(const LayerProducts& layer, bool bias) {
  if (keeps_norm_recipe()) kernel(2 * rows(local_, layer.in));
  gather(layer.in);
  products_.weight_grad(layer);
  if (bias) kernel(rows(tokens_, layer.out));
}

void LayerWalk::column_backward(int64_t in, int64_t out, bool bias, bool is_head) {
  const LayerProducts layer = column(in, out, is_head);
  if (half_ == BackwardHalf::kInput) return column_input_grad(layer);
  if (half_ == BackwardHalf::kWeight) return column_weight_grad(layer, bias);
  if (keeps_norm_recipe()) kernel(2 * rows(local_, in));
  const int gathering = sharded() ? post(Axis::kTp, Verb::kAllGather, all_positions(in)) : -1;
  products_.input_grad(layer);
  if (gathering >= 0) v_.wait(gathering);
  const int reducing =
      split() ? post(Axis::kTp, sharded() ? Verb::kReduceScatter : Verb::kAllReduce, all_positions(in)) : -1;
  products_.weight_grad(layer);
  if (bias) kernel(rows(tokens_, out));
  if (reducing >= 0) v_.wait(reducing);
}

void LayerWalk::row_forward(int64_t in, bool bias) {
  products_.forward(row(in));
  reduce(s_.model.hidden_size);
  if (bias) kernel(2 * stream_bytes());
}

void LayerWalk::row_backward(int64_t in, bool bias) {
  if (input_half()) {
    gather(s_.model.hidden_size);
    products_.input_grad(row(in));
  }
  if (!weight_half()) return;
  products_.weight_grad(row(in));
  if (bias) kernel(stream_bytes());
}

void LayerWalk::replicated_backward(int64_t in, int64_t out) {
  if (input_half()) products_.input_grad(replicated(in, out));
  if (!weight_half()) return;
  if (keeps_norm_recipe()) kernel(2 * rows(local_, in));
  products_.weight_grad(replicated(in, out));
}

void LayerWalk::norm_backward(int64_t width, bool has_residual) {
  if (!input_half()) return;
  const double bytes = rows(local_, width);
  if (keeps_norm_recipe()) return kernel((has_residual ? 4 : 3) * bytes);
  kernel(3 * bytes);
  if (has_residual) kernel(3 * bytes);
}

void LayerWalk::dropout() {
  if (input_half() && s_.model.dropout > 0) kernel(3 * stream_bytes());
}

}  // namespace ranklab
