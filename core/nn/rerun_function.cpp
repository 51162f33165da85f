#include "core/nn/rerun_function.h"

#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "core/nn/custom_function.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {
namespace {

struct Rerun : torch::CustomClassHolder {
  Rerun(TensorFunction of, const RerunCost& at) : function(std::move(of)), cost(at) {}

  TensorFunction function;
  RerunCost cost;
};

CostScope charge(const KernelCost& cost, DType dtype) { return {cost.name, cost.flops, cost.bytes, dtype}; }

struct RerunFunction : CustomFunction<RerunFunction> {
  static at::Tensor forward(AutogradContext* ctx, at::TensorList inputs, const c10::intrusive_ptr<Rerun>& rerun) {
    const CostScope cost = charge(rerun->cost.forward, rerun->cost.dtype);
    ctx->save_for_backward(inputs.vec());
    ctx->saved_data["rerun"] = c10::IValue::make_capsule(rerun);
    return rerun->function(inputs.vec());
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto rerun = c10::static_intrusive_pointer_cast<Rerun>(ctx->saved_data["rerun"].toCapsule());
    const CostScope cost = charge(rerun->cost.backward, rerun->cost.dtype);
    const c10::AutoGradMode recorded(true);
    const RecomputeScope uncounted;
    variable_list leaves;
    for (const at::Tensor& input : ctx->get_saved_variables()) leaves.push_back(input.detach().requires_grad_());
    const at::Tensor out = rerun->function(leaves);
    variable_list result = torch::autograd::grad({out}, leaves, {grads[0]});
    result.emplace_back();
    return result;
  }
};

class FunctionRecomputer : public OutputRecomputer {
 public:
  FunctionRecomputer(TensorFunction function, const std::vector<at::Tensor>& inputs, const RerunCost& cost)
      : function_(std::move(function)), cost_(cost) {
    for (const at::Tensor& input : inputs) inputs_.push_back(input.detach());
  }
  at::Tensor take() override {
    const at::NoGradGuard no_grad;
    const RecomputeScope uncounted;
    const CostScope cost = charge(cost_.forward, cost_.dtype);
    at::Tensor out = function_(inputs_);
    inputs_.clear();
    return out;
  }

 private:
  TensorFunction function_;
  std::vector<at::Tensor> inputs_;
  RerunCost cost_;
};

}  // namespace

at::Tensor rerun_function(const TensorFunction& function, const std::vector<at::Tensor>& inputs,
                          const RerunCost& cost) {
  return RerunFunction::apply(at::TensorList(inputs), c10::make_intrusive<Rerun>(function, cost));
}

RecomputableOutput recomputable_function(const TensorFunction& function, const std::vector<at::Tensor>& inputs,
                                         const RerunCost& cost) {
  const at::Tensor out = rerun_function(function, inputs, cost);
  if (!at::GradMode::is_enabled() || keeps_cheap_outputs()) return {out};
  return {out, c10::make_intrusive<FunctionRecomputer>(function, inputs, cost)};
}

}  // namespace ranklab
