// Calls a module's forward between the rank's hooks, and sets up the hooks of its backward (module_hooks.h). Without
// hooks it costs a branch. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <type_traits>

#include "core/model/forward_context.h"
#include "core/model/residual_stream.h"
#include "core/nn/norm.h"
#include "core/nn/parameter.h"

namespace ranklab {

class ModuleUse {
 public:
  explicit ModuleUse(const ModuleScope& scope) : path_(scope.path()), hooks_(&scope.registry().hooks()) {
    scope.registry().hooks().add_path(path_);
  }

  // `input` as a tensor of this module alone, so that the gradient which hooks see is the one that this module's
  // backward computes, whatever else reads `input`. This is also done without hooks: autograd starts work for which a
  // gradient is complete, such as the reduction of a bucket, before it sums the gradients of several readers of
  // `input`, and a run without hooks should take the same time as one with hooks.
  at::Tensor own(const at::Tensor& input) const;

  // RETURNS: forward(). `input`: the tensor whose gradient the module's backward computes; may be undefined.
  template <typename Forward>
  auto operator()(const ForwardContext& context, const at::Tensor& input, const Forward& forward) const {
    if (hooks_->empty()) return forward();
    begin(context, input);
    auto output = forward();
    if constexpr (std::is_same_v<decltype(output), NormOutput>) show_sum(context, output);
    end(context, input, seen(output));
    return output;
  }

 private:
  static const at::Tensor& seen(const at::Tensor& output) { return output; }
  static const at::Tensor& seen(const NormOutput& output) { return output.normed; }
  static const at::Tensor& seen(const ResidualStream& output) {
    return output.branch_SBH.defined() ? output.branch_SBH : output.x_SBH;
  }
  void begin(const ForwardContext& context, const at::Tensor& input) const;
  void show_sum(const ForwardContext& context, const NormOutput& output) const;
  void end(const ForwardContext& context, const at::Tensor& input, const at::Tensor& output) const;

  std::string path_;
  const ModuleHooks* hooks_;
};

}  // namespace ranklab
