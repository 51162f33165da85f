#include "core/model/module_use.h"

namespace ranklab {
namespace {

ModulePass pass_of(const ForwardContext& context) {
  return context.pass == RecomputePass::kRecompute ? ModulePass::kRecompute : ModulePass::kForward;
}

}  // namespace

at::Tensor ModuleUse::own(const at::Tensor& input) const {
  return input.requires_grad() ? input.view_as(input) : input;
}

void ModuleUse::begin(const ForwardContext& context, const at::Tensor& input) const {
  hooks_->each([&](ModuleHook& hook) { hook.before_forward(path_, pass_of(context), input); });
}

void ModuleUse::show_sum(const ForwardContext& context, const NormOutput& output) const {
  hooks_->each([&](ModuleHook& hook) { hook.residual_stream(path_, pass_of(context), output.sum); });
}

void ModuleUse::end(const ForwardContext& context, const at::Tensor& input, const at::Tensor& output) const {
  hooks_->each([&](ModuleHook& hook) { hook.after_forward(path_, pass_of(context), output); });
  if (!output.defined() || !output.requires_grad()) return;
  output.register_hook(
      [this](const at::Tensor& grad) { hooks_->each([&](ModuleHook& hook) { hook.before_backward(path_, grad); }); });
  if (!input.defined() || !input.requires_grad() || input.is_same(output)) return;
  input.register_hook(
      [this](const at::Tensor& grad) { hooks_->each([&](ModuleHook& hook) { hook.after_backward(path_, grad); }); });
}

}  // namespace ranklab
