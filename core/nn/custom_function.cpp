#include "core/nn/custom_function.h"

#include <c10/util/Type.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "core/base/error.h"
#include "core/sim/type_watch.h"

namespace ranklab {

using torch::autograd::VariableInfo;

class CustomNode final : public torch::autograd::Node {
 public:
  CustomNode(const std::type_info& function, CustomCall::Backward backward, std::vector<bool> is_tensor)
      : context(*this), function_(function), backward_(backward), is_tensor_(std::move(is_tensor)) {}

  std::string name() const override { return c10::demangle(function_.name()); }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    saved_.clear();
    released_ = true;
  }

  // Called after forward(), when the outputs are known: a saved output must not hold a reference to its own node.
  void keep(const variable_list& outputs) {
    for (const at::Tensor& output : outputs)
      outputs_.push_back(output.defined() ? VariableInfo(output) : VariableInfo());
    for (const at::Tensor& tensor : to_save) {
      if (tensor.defined()) {
        saved_.emplace_back(tensor, tensor.grad_fn().get() == this);
      } else {
        saved_.emplace_back();
      }
    }
    to_save.clear();
  }

  variable_list saved() {
    RANKLAB_CHECK(!released_, ErrorKind::kInternal, .where = name(), .what = "backward ran twice through one graph");
    variable_list out;
    for (const torch::autograd::SavedVariable& one : saved_) out.push_back(one.unpack(getptr()));
    return out;
  }

  AutogradContext context;
  variable_list to_save;
  std::unordered_set<at::TensorImpl*> non_differentiable;
  bool materialize_grads = true;
  KeptTypes types;  // set where tensor types are followed

 private:
  variable_list apply(variable_list&& grads) override {
    const std::lock_guard lock(mutex_);
    at::OptionalDeviceGuard guard;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() && materialize_grads) grads[i] = outputs_[i].zeros(guard);
    }
    if (TypeWatch* watch = type_watch_of_thread) watch->begin_backward(types, grads);
    const variable_list all = backward_(&context, grads);
    variable_list out;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool wanted = i < is_tensor_.size() && is_tensor_[i];
      RANKLAB_CHECK(wanted || !all[i].defined(), ErrorKind::kInternal, .where = name(),
                    .what = "backward returned a gradient of something that is not a tensor",
                    .got = "input " + std::to_string(i));
      if (wanted) out.push_back(all[i]);
    }
    RANKLAB_CHECK(all.size() >= is_tensor_.size(), ErrorKind::kInternal, .where = name(),
                  .what = "backward returned too few gradients", .got = std::to_string(all.size()),
                  .want = std::to_string(is_tensor_.size()));
    if (TypeWatch* watch = type_watch_of_thread) watch->end_backward(name(), types, grads, out);
    return out;
  }

  const std::type_info& function_;
  CustomCall::Backward backward_;
  std::vector<bool> is_tensor_;
  std::vector<VariableInfo> outputs_;
  std::vector<torch::autograd::SavedVariable> saved_;
  bool released_ = false;
};

void AutogradContext::save_for_backward(variable_list tensors) { node_.to_save = std::move(tensors); }
variable_list AutogradContext::get_saved_variables() const { return node_.saved(); }
void AutogradContext::mark_non_differentiable(const variable_list& outputs) {
  for (const at::Tensor& output : outputs) node_.non_differentiable.insert(output.unsafeGetTensorImpl());
}
void AutogradContext::set_materialize_grads(bool value) { node_.materialize_grads = value; }
bool AutogradContext::needs_input_grad(size_t index) const { return node_.task_should_compute_output(index); }

void CustomCall::add(const at::Tensor& input) {
  is_tensor.push_back(true);
  inputs.push_back(input);
}
void CustomCall::add(const std::optional<at::Tensor>& input) {
  is_tensor.push_back(input.has_value() && input->defined());
  if (is_tensor.back()) inputs.push_back(*input);
}
void CustomCall::add(at::TensorList list) {
  for (const at::Tensor& input : list) add(input);
}

variable_list CustomCall::run(const std::function<variable_list(AutogradContext*)>& forward) {
  const std::shared_ptr<CustomNode> node(new CustomNode(function, backward, is_tensor), torch::autograd::deleteNode);
  const bool recorded = at::GradMode::is_enabled() && torch::autograd::any_variable_requires_grad(inputs);
  if (recorded) node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  variable_list outputs;
  {
    const at::AutoGradMode off(false);
    outputs = forward(&node->context);
  }
  const auto no_jvp = [](const variable_list&, const variable_list&) -> variable_list {
    throw Error(ErrorKind::kInternal, {.where = "autograd function", .what = "has no forward-mode derivative"});
  };
  const std::vector<std::optional<at::Tensor>> made(outputs.begin(), outputs.end());
  const auto wrapped = torch::autograd::_wrap_outputs(
      inputs, node->non_differentiable, {}, made, recorded ? node : nullptr, no_jvp, {},
      [](const at::Tensor& x) { return x.view_as(x); }, false);
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = *wrapped[i];
  if (recorded) node->keep(outputs);
  if (TypeWatch* watch = type_watch_of_thread) node->types = watch->ran_forward(node->name(), inputs, outputs);
  return outputs;
}

}  // namespace ranklab
