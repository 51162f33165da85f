// A differentiable function in plain ATen ops of which only the inputs are saved: backward runs it again, under
// autograd. For what a GPU does in a few kernels that recompute their intermediates. Charged as two kernels of stated
// costs. Cost: one more forward in backward. Memory: the intermediates live while backward of this function runs.
// Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "core/base/dtype.h"
#include "core/nn/recomputable_output.h"

namespace ranklab {

using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

struct KernelCost {
  const char* name = "";
  double flops = 0, bytes = 0;
};
struct RerunCost {
  KernelCost forward, backward;
  DType dtype = DType::kFloat32;
};

// function(inputs), whose gradients reach all inputs. What else it reads it must own.
at::Tensor rerun_function(const TensorFunction& function, const std::vector<at::Tensor>& inputs, const RerunCost& cost);
// The same for a linear layer that reads the output: it recomputes that instead of saving it, unless
// keeps_cheap_outputs().
RecomputableOutput recomputable_function(const TensorFunction& function, const std::vector<at::Tensor>& inputs,
                                         const RerunCost& cost);

}  // namespace ranklab
