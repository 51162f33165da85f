// A differentiable function with a backward of its own, run by Torch's engine as torch::autograd::Function is:
//   struct Twice : CustomFunction<Twice> {
//     static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, int more) { ... }
//     static variable_list backward(AutogradContext* ctx, const variable_list& grads) { return {grads[0] * 2, {}}; }
//   };
//   y = Twice::apply(x, 1);
// forward() returns a tensor or several, and autograd records nothing of what it does; backward() returns a gradient
// for each input, {} for what is no tensor. Torch's header makes a class of nodes for each function, most of it for
// torch.compile, which C++ does not reach; that was a tenth of the time to compile this program. Here one node runs
// them all. Cost: an allocation a call. Thread rule: backward() runs on the engine's thread, one at a time a node.
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

class CustomNode;

// What a function keeps from forward to backward.
class AutogradContext {
 public:
  explicit AutogradContext(CustomNode& node) : node_(node) {}

  std::map<std::string, c10::IValue> saved_data;  // for as long as the graph lives

  // At most once, from forward(). Released when backward has run.
  void save_for_backward(torch::autograd::variable_list tensors);
  // Throws for a tensor that was changed in place since, and after a backward that did not retain the graph.
  torch::autograd::variable_list get_saved_variables() const;
  void mark_non_differentiable(const torch::autograd::variable_list& outputs);
  // Whether gradients of outputs that nobody used are zeros (the default) or undefined.
  void set_materialize_grads(bool value);
  // Whether anybody wants the gradient of an input. Inputs that are tensors count.
  bool needs_input_grad(size_t index) const;

 private:
  CustomNode& node_;
};

// A call of a function, whichever it is.
struct CustomCall {
  using Backward = torch::autograd::variable_list (*)(AutogradContext*, const torch::autograd::variable_list&);

  const std::type_info& function;
  Backward backward;
  torch::autograd::variable_list inputs = {};
  std::vector<bool> is_tensor = {};  // of each input of forward(), of each tensor of a list

  void add(const at::Tensor& input);
  void add(const std::optional<at::Tensor>& input);
  void add(at::TensorList list);
  template <typename T>
  void add(const T&) {
    is_tensor.push_back(false);
  }
  torch::autograd::variable_list run(const std::function<torch::autograd::variable_list(AutogradContext*)>& forward);
};

template <class F>
struct CustomFunction {
  template <typename... Inputs>
  static auto apply(Inputs&&... inputs) {
    using Result = decltype(F::forward(nullptr, std::forward<Inputs>(inputs)...));
    CustomCall call{typeid(F), &F::backward};
    (call.add(inputs), ...);
    torch::autograd::variable_list outputs = call.run([&](AutogradContext* ctx) -> torch::autograd::variable_list {
      return {F::forward(ctx, std::forward<Inputs>(inputs)...)};
    });
    if constexpr (std::is_same_v<Result, at::Tensor>) {
      return std::move(outputs[0]);
    } else {
      return outputs;
    }
  }
};

}  // namespace ranklab
