// Functions of a program that observe the tensors of a model's modules, forward and backward, on every rank: the
// counterpart of PyTorch's register_forward_hook and register_full_backward_hook, selected by pattern. Cost: a look-up
// for each use of a module. Thread rule: a function is called on the threads of all ranks, concurrently.
#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/nn/module_hooks.h"

namespace ranklab {

// kResidualStream: what a norm read after adding the last branch to the residual stream, which corresponds to the
// hidden states in PyTorch models. The input of such a norm, and the output of a layer, are only the last branch,
// because it is added later.
enum class ModuleTensor : uint8_t { kInput, kOutput, kGradOutput, kGradInput, kResidualStream };

struct ModuleCall {
  RankContext& ctx;
  const std::string& path;  // "layers.1.attention"
  ModulePass pass;
  ModuleTensor kind;
  const at::Tensor& tensor;  // may be undefined
  int64_t step = 0;
  int microbatch = 0;
};
std::string_view name(ModuleTensor kind);  // "input", "output", "grad_output", "grad_input", "residual_stream"

// A glob of module paths (* any text, ? one character), and the function to call for each use of a matching module.
struct ModuleWatch {
  std::string pattern;
  std::function<void(const ModuleCall&)> call;
};

// The watches of one rank. Throws kInvalidArgument, on all ranks, for a pattern that matches no module of any rank.
// Construction is collective over `world`, which must be untraced.
class ModuleWatches final : public ModuleHook {
 public:
  ModuleWatches(std::vector<ModuleWatch> watches, RankContext& ctx, const ModuleHooks& hooks, Communicator& world);
  void begin_step(int64_t step) { step_ = step; }

  void before_forward(const std::string& path, ModulePass pass, const at::Tensor& input) override;
  void after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) override;
  void before_backward(const std::string& path, const at::Tensor& grad_output) override;
  void after_backward(const std::string& path, const at::Tensor& grad_input) override;
  void residual_stream(const std::string& path, ModulePass pass, const at::Tensor& sum) override;

 private:
  void show(const std::string& path, ModulePass pass, ModuleTensor kind, const at::Tensor& tensor);

  std::vector<ModuleWatch> watches_;
  RankContext& ctx_;
  std::unordered_map<std::string, std::vector<const ModuleWatch*>> of_path_;
  int64_t step_ = 0;
};

// Throws kInvalidArgument, on all ranks, unless a name of some rank matches. `where`: the option or function to name.
void check_pattern(const std::string& where, const std::string& pattern, const std::vector<std::string>& names,
                   Communicator& world, c10::Device device);

}  // namespace ranklab
