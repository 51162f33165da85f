// A differentiable function with a backward of its own, run by Torch's engine as torch::autograd::Function is:
//   struct Twice : CustomFunction<Twice> {
//     static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, int more) { ... }
//     static variable_list backward(AutogradContext* ctx, const variable_list& grads) { return {grads[0] * 2, {}}; }
//   };
//   y = Twice::apply(x, 1);
// forward() returns one or several tensors and runs with autograd off; backward() returns a gradient per input, {} for
// a non-tensor. Torch's header instantiates a node class for each function, mostly for torch.compile, which C++ does
// not use; that took a tenth of this program's compile time. Here one node class runs them all. Cost: one allocation
// per call. Thread rule: backward() runs on the engine's thread, one call per node at a time.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace torch::autograd {
using variable_list = std::vector<at::Tensor>;
}

namespace ranklab {

using torch::autograd::variable_list;

class CustomNode;

// The state that a function passes from forward to backward.
class AutogradContext {
 public:
  explicit AutogradContext(CustomNode& node) : node_(node) {}

  std::map<std::string, c10::IValue> saved_data;  // for as long as the graph lives

  // Call at most once, in forward(). Released when backward has run.
  void save_for_backward(variable_list tensors);
  // Throws if a tensor was modified in place since, or after a backward that did not retain the graph.
  variable_list get_saved_variables() const;
  void mark_non_differentiable(const variable_list& outputs);
  // Whether gradients of outputs that nobody used are zeros (the default) or undefined.
  void set_materialize_grads(bool value);
  // Whether the gradient of an input is needed. `index` counts only the inputs that are tensors.
  bool needs_input_grad(size_t index) const;

 private:
  CustomNode& node_;
};

// One call of any CustomFunction, with its type erased.
struct CustomCall {
  using Backward = variable_list (*)(AutogradContext*, const variable_list&);

  const std::type_info& function;
  Backward backward;
  variable_list inputs = {};
  std::vector<bool> is_tensor = {};  // one entry per input of forward() and per tensor of a list

  void add(const at::Tensor& input);
  void add(const std::optional<at::Tensor>& input);
  void add(at::TensorList list);
  template <typename T>
  void add(const T&) {
    is_tensor.push_back(false);
  }
  variable_list run(const std::function<variable_list(AutogradContext*)>& forward);
};

template <class F>
struct CustomFunction {
  template <typename... Inputs>
  static auto apply(Inputs&&... inputs) {
    using Result = decltype(F::forward(nullptr, std::forward<Inputs>(inputs)...));
    CustomCall call{typeid(F), &F::backward};
    (call.add(inputs), ...);
    variable_list outputs = call.run(
        [&](AutogradContext* ctx) -> variable_list { return {F::forward(ctx, std::forward<Inputs>(inputs)...)}; });
    if constexpr (std::is_same_v<Result, at::Tensor>) {
      return std::move(outputs[0]);
    } else {
      return outputs;
    }
  }
};

}  // namespace ranklab
