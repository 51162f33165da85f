#include "core/optim/grad_clip.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/base/error.h"
#include "core/nn/row_kernels_16bit.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

double sum_of_squares(const at::Tensor& grad) {
  const CostScope cost(0.0, static_cast<double>(grad.nbytes()), DType::kFloat32);
  if (grad.is_cpu() && grad.is_contiguous() && grad.scalar_type() == at::kFloat) {
    return kernels::sum_of_squares(grad.const_data_ptr<float>(), grad.numel());
  }
  if (grad.is_cpu() && grad.is_contiguous() && grad.scalar_type() == at::kDouble) {
    return kernels::sum_of_squares(grad.const_data_ptr<double>(), grad.numel());
  }
  if (grad.is_cpu() && grad.is_contiguous() && grad.scalar_type() == at::kBFloat16) {
    return kernels::sum_of_squares(static_cast<const kernels::Bf16*>(grad.const_data_ptr()), grad.numel());
  }
  if (grad.is_cpu() && grad.is_contiguous() && grad.scalar_type() == at::kHalf) {
    return kernels::sum_of_squares(static_cast<const kernels::Fp16*>(grad.const_data_ptr()), grad.numel());
  }
  return grad.to(at::kDouble).square().sum().item<double>();
}

const at::Tensor& reduced_grad(const Parameter& parameter) {
  const at::Tensor& grad = parameter.data.grad();
  RANKLAB_CHECK(grad.defined(), ErrorKind::kInternal, .where = "clip_grad_norm", .what = "a parameter has no gradient",
                .got = parameter.name, .fix = "call GradReducer::finish() first");
  return grad;
}

// Squares of sharded and replicated parameters. The first rank of an axis speaks for the replicated ones.
struct Squares {
  double dense = 0;
  double expert = 0;
};

Squares local_squares(const std::vector<Parameter*>& parameters, RankContext& context) {
  const bool first_of_tp = context.coordinate(Axis::kTp) == 0;
  const bool first_of_etp = context.coordinate(Axis::kEtp) == 0;
  Squares squares;
  for (const Parameter* parameter : parameters) {
    const std::vector<int>& holders = parameter->pipeline_ranks;
    const bool speaks = holders.empty() || holders.front() == context.coordinate(Axis::kPp);
    const at::Tensor& grad = reduced_grad(*parameter);
    if (!speaks) continue;
    const bool sharded = !parameter->partition.replicated();
    if (parameter->is_expert) {
      if (sharded || first_of_etp) squares.expert += sum_of_squares(grad);
    } else if (sharded || first_of_tp) {
      squares.dense += sum_of_squares(grad);
    }
  }
  return squares;
}

double summed_over(double value, Axis axis, RankContext& context) {
  if (context.size(axis) == 1) return value;
  const auto options = at::TensorOptions().dtype(at::kDouble).device(context.device());
  return context.comm(axis).all_reduce(at::full({1}, value, options)).item<double>();
}

}  // namespace

double grad_norm(const std::vector<Parameter*>& parameters, RankContext& context, OwnedPieces pieces) {
  const at::NoGradGuard no_grad;
  Squares squares = local_squares(parameters, context);
  if (pieces.dense) squares.dense = summed_over(squares.dense, *pieces.dense, context);
  if (pieces.experts) squares.expert = summed_over(squares.expert, *pieces.experts, context);
  double total = summed_over(squares.dense, Axis::kTp, context);
  // Each ep rank owns other experts, so their squares add up over ep as well.
  if (context.size(Axis::kEp) > 1 || context.size(Axis::kEtp) > 1) {
    total += summed_over(summed_over(squares.expert, Axis::kEtp, context), Axis::kEp, context);
  } else {
    total += squares.expert;
  }
  return std::sqrt(summed_over(total, Axis::kPp, context));
}

double clip_factor(double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  return max_norm > 0 && factor < 1.0 ? factor : 1.0;
}

void scale_grads(const std::vector<Parameter*>& parameters, double factor) {
  if (factor == 1.0 || parameters.empty()) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> grads;
  for (const Parameter* parameter : parameters) grads.push_back(parameter->data.grad());
  at::_foreach_mul_(grads, at::Scalar(factor));
}

// The squares of finite numbers of 32 bits or less add up to a finite fp64 number.
bool any_overflow(const std::vector<Parameter*>& parameters, RankContext& context) {
  const at::NoGradGuard no_grad;
  double squares = 0;
  for (const Parameter* parameter : parameters) squares += sum_of_squares(reduced_grad(*parameter));
  const bool here = !std::isfinite(squares);
  if (context.world_size() == 1) return here;
  const NoCostScope no_cost;
  const at::Tensor mine = at::full({1}, here ? 1.0f : 0.0f, at::TensorOptions(at::kFloat).device(context.device()));
  return context.comm(Axis::kWorld).all_reduce(mine, ReduceOp::kMax).item<float>() > 0;
}

double clip_grad_norm(const std::vector<Parameter*>& parameters, RankContext& context, double max_norm,
                      OwnedPieces pieces) {
  const double norm = grad_norm(parameters, context, pieces);
  scale_grads(parameters, clip_factor(norm, max_norm));
  return norm;
}

}  // namespace ranklab
