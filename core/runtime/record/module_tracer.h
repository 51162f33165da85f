// Records a span for each use of a module inside an action of the schedule ("layers.3.attention", "layers.3.attention
// backward"), and for each kernel if the trace is that detailed. Spans of a rank nest: children in their parents,
// modules in their action. Autograd reports the end of a module late where modules share an input, so a span also ends
// when the next module begins that is neither its parent nor its child. Thread rule: its rank's thread.
#pragma once
#include <string>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/nn/module_hooks.h"
#include "core/sim/kernel_run.h"

namespace ranklab {

class ModuleTracer final : public ModuleHook {
 public:
  explicit ModuleTracer(RankContext& rank) : rank_(rank) {}

  // The open modules of an action, the outermost first. An action that is interleaved with another one keeps its own.
  struct Open {
    const std::string* path = nullptr;
    ModulePass pass = ModulePass::kForward;
    Event event;  // recorded when the module ends
  };
  using Stack = std::vector<Open>;
  // Between these calls, modules belong to this action. pause() ends all spans, and resume() continues them.
  void resume(Stack& action);
  void pause();

  void kernel(const KernelRun& kernel);

  void before_forward(const std::string& path, ModulePass pass, const at::Tensor& input) override;
  void after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) override;
  void before_backward(const std::string& path, const at::Tensor& grad_output) override;
  void after_backward(const std::string& path, const at::Tensor& grad_input) override;

 private:
  void begin(const std::string& path, ModulePass pass);
  void end(const std::string& path, ModulePass pass);
  Event begun(const Open& open);
  void record(const Open& open);
  bool traces() const;

  RankContext& rank_;
  Stack* action_ = nullptr;  // null: between actions
};

// "layers.3.attention backward"
std::string module_event_name(const std::string& path, ModulePass pass);

}  // namespace ranklab
