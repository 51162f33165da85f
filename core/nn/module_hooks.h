// Hooks around the uses of a model's modules, forward and backward, for those who watch a model without being a part of
// it: the trace's spans of modules (core/runtime/module_tracer.h), statistics, dumps. PyTorch's counterparts are
// register_forward_hook and register_full_backward_hook. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ranklab {

// kRecompute: the second forward of activation recomputation, which runs inside backward.
enum class ModulePass : uint8_t { kForward, kRecompute, kBackward };

// Module paths are the prefixes of parameter names: "layers.3.attention". Uses of a parent enclose those of its
// children.
class ModuleHook {
 public:
  virtual ~ModuleHook() = default;
  // Around a forward. `output` is what later modules read.
  virtual void before_forward(const std::string& path, ModulePass pass, const at::Tensor& input) = 0;
  virtual void after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) = 0;
  // The gradient of the output has arrived, and the module's backward runs next; the gradient of the input is complete.
  // Autograd orders the parts of a graph itself: where modules share an input, the later call may come after the
  // backward of a sibling. Gradients may be undefined. Deferred weight gradients run later, outside of both.
  virtual void before_backward(const std::string& path, const at::Tensor& grad_output) = 0;
  virtual void after_backward(const std::string& path, const at::Tensor& grad_input) = 0;
};

class ModuleHooks {
 public:
  // Adds or removes a hook. It must outlive the backward of the forwards that it was there for.
  void set(ModuleHook& hook, bool there) {
    std::erase(hooks_, &hook);
    if (there) hooks_.push_back(&hook);
  }
  bool empty() const { return hooks_.empty(); }
  template <typename Call>
  void each(const Call& call) const {
    for (ModuleHook* hook : hooks_) call(*hook);
  }

 private:
  std::vector<ModuleHook*> hooks_;
};

}  // namespace ranklab
