#include "core/optim/grad_clip.h"

#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/injected_bug.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// Charged as one kernel per gradient, even if one kernel of the device takes all gradients at once.
CostScope squares_cost(const at::Tensor& grad) {
  return {"sum_of_squares", 0.0, static_cast<double>(grad.nbytes()), DType::kFloat32};
}

// Whether only the first rank of an axis counts a gradient, because all ranks of the axis have the same.
struct Counting {
  bool first_only = false;
  Axis axis = Axis::kTp;
};

Counting counting_of(const Parameter& parameter) {
  if (injected(InjectedBug::kExpertsMissingFromNorm) && parameter.is_expert) return {true, Axis::kTp};
  return {parameter.partition.replicated(), parameter.is_expert ? Axis::kEtp : Axis::kTp};
}

// Whether this rank counts the parameter on behalf of all ranks that hold it: copies in other stages, or the same
// shard.
bool counts_for_group(const Parameter& parameter, const RankContext& context) {
  const std::vector<int>& holders = parameter.pipeline_ranks;
  if (!holders.empty() && holders.front() != context.coordinate(Axis::kPp)) return false;
  const Counting how = counting_of(parameter);
  return !how.first_only || context.coordinate(how.axis) == 0;
}

void report_types(const Parameter& parameter) {
  TypeWatch* watch = type_watch_of_thread;
  if (watch == nullptr) return;
  const Counting how = counting_of(parameter);
  watch->counted(parameter.name, how.first_only, how.axis);
  if (!parameter.pipeline_ranks.empty()) watch->counted(parameter.name, true, Axis::kPp);
}

const at::Tensor& reduced_grad(const Parameter& parameter) {
  const at::Tensor& grad = parameter.data.grad();
  RANKLAB_CHECK(grad.defined(), ErrorKind::kInternal, .where = "clip_grad_norm", .what = "a parameter has no gradient",
                .got = parameter.name, .fix = "call GradReducer::finish() first");
  return grad;
}

// The gradients that this rank counts: those of sharded parameters, and of replicated ones on the first rank of the
// axis.
struct Counted {
  std::vector<at::Tensor> dense, expert;
};

Counted counted_here(const std::vector<Parameter*>& parameters, const RankContext& context) {
  Counted counted;
  for (const Parameter* parameter : parameters) {
    const at::Tensor& grad = reduced_grad(*parameter);
    report_types(*parameter);
    if (counts_for_group(*parameter, context)) (parameter->is_expert ? counted.expert : counted.dense).push_back(grad);
  }
  return counted;
}

double squares_of(const std::vector<at::Tensor>& grads) {
  double sum = 0;
  for (const at::Tensor& grad : grads) sum += sum_of_squares(grad);
  return sum;
}

bool on_device_with_kernels(const std::vector<Parameter*>& parameters) {
  if (parameters.empty()) return false;
  const at::Tensor& grad = reduced_grad(*parameters[0]);
  return has_kernel_type(grad) && device_kernels_of(grad) != nullptr;
}

// The sum of squares as a [1] tensor that stays on the device, so that the host does not wait.
at::Tensor device_squares(const std::vector<at::Tensor>& grads, at::Device device) {
  for (const at::Tensor& grad : grads) {
    const CostScope cost = squares_cost(grad);
  }
  const NoCostScope charged;
  const auto options = at::TensorOptions().dtype(at::kDouble).device(device);
  at::Tensor total = at::zeros({1}, options);
  std::map<DeviceNumber, std::vector<DeviceArray>> arrays;
  std::vector<at::Tensor> dense;
  int64_t chunks = 0;
  for (const at::Tensor& grad : grads) {
    dense.push_back(grad.contiguous());
    arrays[device_number(grad)].push_back({device_in(dense.back()), grad.numel()});
    chunks += (grad.numel() + kDeviceSquaresChunk - 1) / kDeviceSquaresChunk;
  }
  const at::Tensor parts = at::empty({chunks}, options);
  for (const auto& [number, list] : arrays) {
    device_kernels_of(total)->add_squares(number, list, parts.mutable_data_ptr<double>(),
                                          total.mutable_data_ptr<double>());
  }
  return total;
}

// The cost of writing one number into a message.
CostScope number_cost() { return {"fill_", 0, sizeof(double), DType::kFloat64}; }

double summed_over(double value, Axis axis, RankContext& context) {
  if (context.size(axis) == 1) return value;
  at::Tensor number;
  {
    const CostScope cost = number_cost();
    number = at::full({1}, value, at::TensorOptions().dtype(at::kDouble).device(context.control_device()));
  }
  return context.comm(axis).all_reduce(number).item<double>();
}
at::Tensor summed_over(const at::Tensor& value, Axis axis, RankContext& context) {
  if (context.size(axis) == 1) return value;
  { const CostScope cost = number_cost(); }
  return context.comm(axis).all_reduce(value);
}
at::Tensor plus(const at::Tensor& a, const at::Tensor& b) {
  const NoCostScope free;  // the host adds two of its own numbers
  return a + b;
}
double plus(double a, double b) { return a + b; }

// Sum over the whole model. Value: a double, or a tensor on the device.
template <typename Value>
Value summed_over_world(Value dense, Value expert, RankContext& context, const OwnedPieces& pieces) {
  const auto sum_dense = [&](const Value& value, Axis axis) {
    if (TypeWatch* watch = type_watch_of_thread) watch->norm_summed(false, axis);
    return summed_over(value, axis, context);
  };
  const auto sum_experts = [&](const Value& value, Axis axis) {
    if (TypeWatch* watch = type_watch_of_thread) watch->norm_summed(true, axis);
    return summed_over(value, axis, context);
  };
  if (pieces.dense) dense = sum_dense(dense, *pieces.dense);
  if (pieces.experts) expert = sum_experts(expert, *pieces.experts);
  const Value total = sum_dense(dense, Axis::kTp);
  // Each ep rank owns different experts, so their squares are summed over ep, too.
  const bool own_group = injected(InjectedBug::kNormPerEpGroup);
  if ((context.size(Axis::kEp) > 1 || context.size(Axis::kEtp) > 1) && !own_group)
    expert = sum_experts(sum_experts(expert, Axis::kEtp), Axis::kEp);
  if (TypeWatch* watch = type_watch_of_thread) watch->norm_summed(true, Axis::kPp);
  return sum_dense(plus(total, expert), Axis::kPp);
}

}  // namespace

double sum_of_squares(const at::Tensor& grad) {
  const CostScope cost = squares_cost(grad);
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
  if (grad.is_meta()) return 1;  // the cost of one pass was charged; there is nothing to add up
  return grad.to(at::kDouble).square().sum().item<double>();
}

bool counts_in_world(const Parameter& parameter, const RankContext& context, const OwnedPieces& pieces) {
  if (!counts_for_group(parameter, context)) return false;
  const bool expert = parameter.is_expert;
  const std::optional<Axis> sharded = expert ? pieces.experts : pieces.dense;
  if (!sharded) return context.coordinate(expert ? Axis::kEdp : context.replica_axis()) == 0;
  const Axis part = expert ? Axis::kEdpShard : Axis::kDpShard, groups = expert ? Axis::kEdpReplica : Axis::kDpReplica;
  return *sharded != part || context.coordinate(groups) == 0;
}

double grad_norm(const std::vector<Parameter*>& parameters, RankContext& context, OwnedPieces pieces) {
  const at::NoGradGuard no_grad;
  const Counted counted = counted_here(parameters, context);
  if (on_device_with_kernels(parameters)) {
    const at::Device device = parameters[0]->data.device();
    const at::Tensor squares = summed_over_world(device_squares(counted.dense, device),
                                                 device_squares(counted.expert, device), context, pieces);
    return std::sqrt(squares.item<double>());
  }
  return std::sqrt(summed_over_world(squares_of(counted.dense), squares_of(counted.expert), context, pieces));
}

double clip_factor(double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  return max_norm > 0 && factor < 1.0 ? factor : 1.0;
}

void charge_scaling(const std::vector<Parameter*>& parameters, double factor) {
  if (factor == 1.0 || parameters.empty()) return;
  double bytes = 0;
  for (const Parameter* parameter : parameters) bytes += stored_bytes(parameter->data.grad());
  const CostScope cost("_foreach_mul_", 0, 2 * bytes, dtype_of(parameters[0]->data.grad()));
}

void scale_grads(const std::vector<Parameter*>& parameters, double factor) {
  if (factor == 1.0 || parameters.empty()) return;
  charge_scaling(parameters, factor);
  const NoCostScope charged;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> grads;
  for (const Parameter* parameter : parameters) grads.push_back(parameter->data.grad());
  at::_foreach_mul_(grads, at::Scalar(factor));
}

// Valid because the squares of finite numbers of 32 bits or less have a finite sum in fp64.
bool any_overflow(const std::vector<Parameter*>& parameters, RankContext& context) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> grads;
  for (const Parameter* parameter : parameters) grads.push_back(reduced_grad(*parameter));
  at::Tensor mine;
  if (on_device_with_kernels(parameters)) {
    const at::Tensor squares = device_squares(grads, parameters[0]->data.device());
    if (context.world_size() == 1) return !std::isfinite(squares.item<double>());
    const NoCostScope no_cost;
    mine = at::isfinite(squares).logical_not().to(at::kFloat);
  } else {
    const bool here = !std::isfinite(squares_of(grads));
    if (context.world_size() == 1) return here;
    const NoCostScope no_cost;
    mine = at::full({1}, here ? 1.0f : 0.0f, at::TensorOptions(at::kFloat).device(context.control_device()));
  }
  const NoCostScope no_cost;
  return context.comm(Axis::kWorld).all_reduce(mine, ReduceOp::kMax).item<float>() > 0;
}

bool overflows_here(const std::vector<Parameter*>& parameters) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> grads;
  for (const Parameter* parameter : parameters) grads.push_back(reduced_grad(*parameter));
  return !std::isfinite(squares_of(grads));
}

}  // namespace ranklab
