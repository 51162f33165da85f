#include "core/parallel/parameter_gate.h"

#include <ATen/core/grad_mode.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/nn/custom_function.h"
#include "core/parallel/deferred_grads.h"

namespace ranklab {
namespace {

void enter(const GatedPart& part, const std::string& next) {
  for (const std::string& unit : part.units) part.gate->enter(unit, &unit == &part.units.back() ? next : "");
}
void leave(const GatedPart& part) {
  for (const std::string& unit : part.units) part.gate->leave(unit);
}

struct KeptPart : torch::CustomClassHolder {
  explicit KeptPart(GatedPart kept) : part(std::move(kept)) {}
  GatedPart part;
};
using SharedPart = c10::intrusive_ptr<KeptPart>;

// Passes GatedTensors through. When their gradients arrive, the part's backward begins (at its outputs) or has ended
// (at its inputs). Deferred products run later between the same two calls.
enum class Border { kInputs, kOutputs };

struct BorderFunction : CustomFunction<BorderFunction> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& first, const std::optional<at::Tensor>& second,
                               const SharedPart& part, Border border) {
    ctx->set_materialize_grads(false);
    ctx->saved_data["part"] = c10::IValue::make_capsule(part);
    ctx->saved_data["border"] = static_cast<int64_t>(border);
    if (!second) return {first.view_as(first)};
    return {first.view_as(first), second->view_as(*second)};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto part = c10::static_intrusive_pointer_cast<KeptPart>(ctx->saved_data["part"].toCapsule());
    const bool begins = static_cast<Border>(ctx->saved_data["border"].toInt()) == Border::kOutputs;
    const auto act = [part, begins] { begins ? enter(part->part, part->part.next_backward) : leave(part->part); };
    act();
    if (WeightGradQueue* queue = deferred_weight_grads()) queue->push(act);
    return {grads[0], grads.size() > 1 ? grads[1] : at::Tensor(), {}, {}};
  }
};

GatedTensors with_border(const GatedTensors& tensors, const SharedPart& part, Border border) {
  const bool pair = tensors.size() > 1 && tensors[1].defined();
  const variable_list through =
      BorderFunction::apply(tensors[0], pair ? std::optional<at::Tensor>(tensors[1]) : std::nullopt, part, border);
  GatedTensors result(tensors.size());
  std::copy(through.begin(), through.end(), result.begin());
  return result;
}

}  // namespace

GatedTensors gated(const GatedPart& part, const GatedTensors& inputs,
                   const std::function<GatedTensors(const GatedTensors&)>& compute) {
  if (part.gate == nullptr) return compute(inputs);
  RANKLAB_CHECK(inputs.size() <= 2, ErrorKind::kInternal, .where = "gated", .what = "too many tensors",
                .got = std::to_string(inputs.size()), .want = "at most 2");
  const bool learns = at::GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(), [](const auto& input) {
                        return input.defined() && input.requires_grad();
                      });
  const SharedPart shared = learns ? c10::make_intrusive<KeptPart>(part) : SharedPart();
  enter(part, part.next_forward);
  GatedTensors outputs = compute(learns ? with_border(inputs, shared, Border::kInputs) : inputs);
  if (learns) outputs = with_border(outputs, shared, Border::kOutputs);
  leave(part);
  return outputs;
}

}  // namespace ranklab
