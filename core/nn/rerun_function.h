// A differentiable function in plain ATen ops that saves only its inputs: backward runs it again, under autograd. For
// computations that a GPU does in a few kernels that recompute their intermediates. Charged as two kernels of stated
// costs. Cost: one more forward in backward. Memory: the intermediates exist while backward of this function runs.
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

// function(inputs), with gradients for all inputs. Anything else that the function reads must be owned by it.
at::Tensor rerun_function(const TensorFunction& function, const std::vector<at::Tensor>& inputs, const RerunCost& cost);
// The same for an output that a linear layer reads: the layer recomputes it instead of saving it, unless
// keeps_cheap_outputs().
RecomputableOutput recomputable_function(const TensorFunction& function, const std::vector<at::Tensor>& inputs,
                                         const RerunCost& cost);

}  // namespace ranklab
