// Hooks around the uses of a model's modules, forward and backward, for code that observes a model without being part
// of it: the trace's module spans (core/runtime/record/module_tracer.h), statistics, dumps. PyTorch's counterparts are
// register_forward_hook and register_full_backward_hook. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/attention/softmax_attention.h"

namespace ranklab {

// kRecompute: the second forward of activation recomputation, which runs inside backward.
enum class ModulePass : uint8_t { kForward, kRecompute, kBackward };

// Module paths are the prefixes of parameter names: "layers.3.attention"; modules that share their parameters differ in
// their paths. Uses of a parent enclose those of its children.
class ModuleHook {
 public:
  virtual ~ModuleHook() = default;
  // Called before and after a forward. `output` is what later modules read.
  virtual void before_forward(const std::string& path, ModulePass pass, const at::Tensor& input) = 0;
  virtual void after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) = 0;
  // Called when the gradient of the output has arrived and the module's backward runs next, and when the gradient of
  // the input is complete. Autograd itself orders the parts of a graph: where modules share an input, the later call
  // may come after the backward of a sibling. Gradients may be undefined. Deferred weight gradients run later, outside
  // of both calls.
  virtual void before_backward(const std::string& path, const at::Tensor& grad_output) = 0;
  virtual void after_backward(const std::string& path, const at::Tensor& grad_input) = 0;

  // The residual stream that a norm read, including the last branch. Called before after_forward() of the norm's
  // output.
  virtual void residual_stream(const std::string& /*path*/, ModulePass /*pass*/, const at::Tensor& /*sum*/) {}
  // The rotated queries and keys of an attention whose ranks have whole sequences (no context parallelism), and the
  // rule by which its scores are made. They are computed only for this call, so it is made only if some hook wants
  // them.
  virtual bool wants_heads() const { return false; }
  virtual void attention_heads(const std::string& /*path*/, const at::Tensor& /*q_BHSD*/, const at::Tensor& /*k_BGSD*/,
                               const ScoreRule& /*rule*/) {}
};

class ModuleHooks {
 public:
  // Adds or removes a hook. The hook must outlive the backward of every forward during which it was set.
  void set(ModuleHook& hook, bool there) {
    std::erase(hooks_, &hook);
    if (there) hooks_.push_back(&hook);
  }
  bool empty() const { return hooks_.empty(); }
  // `heads()` computes the queries and keys.
  template <typename Heads>
  void show_heads(const std::string& path, const ScoreRule& rule, const Heads& heads) const {
    for (ModuleHook* hook : hooks_) {
      if (!hook->wants_heads()) continue;
      const SoftmaxHeads made = heads();
      hook->attention_heads(path, made.q, made.k, rule);
    }
  }
  // The paths of all modules that call hooks, in the order in which the modules were created.
  void add_path(const std::string& path) { paths_.push_back(path); }
  const std::vector<std::string>& paths() const { return paths_; }
  template <typename Call>
  void each(const Call& call) const {
    for (ModuleHook* hook : hooks_) call(*hook);
  }

 private:
  std::vector<ModuleHook*> hooks_;
  std::vector<std::string> paths_;
};

}  // namespace ranklab
