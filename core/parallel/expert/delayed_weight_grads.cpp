#include "core/parallel/expert/delayed_weight_grads.h"

#include <torch/custom_class.h>

#include <utility>

#include "core/nn/custom_function.h"

namespace ranklab {
namespace {

struct KeptAction : torch::CustomClassHolder {
  explicit KeptAction(std::function<void()> its_action) : action(std::move(its_action)) {}
  std::function<void()> action;
};

// Passes a tensor through; calls the action when its gradient arrives.
struct ActInBackward : CustomFunction<ActInBackward> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const c10::intrusive_ptr<KeptAction>& kept) {
    ctx->saved_data["kept"] = c10::IValue::make_capsule(kept);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static_cast<KeptAction&>(*ctx->saved_data["kept"].toCapsule()).action();
    return {grads[0], {}};
  }
};

}  // namespace

at::Tensor DelayedWeightGrads::rows(const at::Tensor& rows_NH) {
  return ActInBackward::apply(rows_NH,
                              c10::make_intrusive<KeptAction>([self = shared_from_this()] { self->defer_.reset(); }));
}

at::Tensor DelayedWeightGrads::outputs(const at::Tensor& outputs_NH) {
  return ActInBackward::apply(outputs_NH, c10::make_intrusive<KeptAction>([self = shared_from_this()] {
                                if (deferred_weight_grads() == nullptr) self->defer_.emplace(self->queue_);
                              }));
}

}  // namespace ranklab
