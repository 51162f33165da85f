// Linear layers sharded over the tensor-parallel axis (Megatron-LM, arXiv 1909.08053). Column: each rank owns output
// features, so its input gradient is a partial sum. Row: each rank owns input features, so its output is a partial sum;
// the bias is added once, after the reduction. A column layer followed by a row layer costs one all_reduce forward and
// one backward, or with sequence parallelism an all_gather and a reduce_scatter each way (the same bytes). Backward
// overlaps the collective of the input gradient with the weight gradient's GEMM. With sequence parallelism only the
// local positions are saved, and backward gathers the others again, as in Megatron. Legend:
// x [S, B, in] -> [S, B, out]. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/nn/activation.h"
#include "core/nn/norm.h"
#include "core/nn/parameter.h"
#include "core/nn/recomputable_output.h"
#include "core/parallel/tensor_parallel.h"

namespace ranklab {

class LinearQuantizer;

// How a layer multiplies in one forward.
struct LinearUse {
  LinearQuantizer* quantizer = nullptr;  // the layer's (linear_quantizer.h); null: products in the type of x
  TokenContext tokens = {};              // the tokens of x, for the quantizer
};

// y = x W^T + b on this rank's output features. `weight` is any tensor [out_local, in] (also a tied embedding); bias
// may be undefined. x holds all positions, or this rank's with sequence parallelism; y holds all positions.
at::Tensor column_parallel_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                  const TensorParallel& tp, const LinearUse& use = {});
// The same for a norm's output, which backward recomputes instead of saving it if the norm has a recipe.
at::Tensor column_parallel_linear(const NormOutput& x, const at::Tensor& weight, const at::Tensor& bias,
                                  const TensorParallel& tp, const LinearUse& use = {});
// y = sum over ranks of x W^T, plus b. x [.., in_local]; y holds all positions, or this rank's with sequence
// parallelism.
at::Tensor row_parallel_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                               const TensorParallel& tp, const LinearUse& use = {});
// The same for an activation's output, which backward recomputes instead of saving it.
at::Tensor row_parallel_linear(const Activated& x, const at::Tensor& weight, const at::Tensor& bias,
                               const TensorParallel& tp, const LinearUse& use = {});

// The same for swiglu(gate_up), which backward recomputes in the pass that computes the activation's gradient.
at::Tensor row_parallel_linear_of_swiglu(const at::Tensor& gate_up, const at::Tensor& weight, const at::Tensor& bias,
                                         const TensorParallel& tp, const LinearUse& use = {});

// The same for an output that backward recomputes.
at::Tensor row_parallel_linear(const RecomputableOutput& x, const at::Tensor& weight, const at::Tensor& bias,
                               const TensorParallel& tp, const LinearUse& use = {});

class ColumnParallelLinear {
 public:
  ColumnParallelLinear(const ModuleScope& scope, const ModuleSpec& spec, TensorParallel tp);
  at::Tensor operator()(const NormOutput& x, const TokenContext& tokens) const;
  const Parameter& weight() const { return *weight_; }
  at::Tensor bias() const;                  // undefined if there is none
  std::vector<at::Tensor> trained() const;  // weight and bias, if they have gradients

 private:
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
  LinearQuantizer* quantizer_ = nullptr;
  TensorParallel tp_;
};

class RowParallelLinear {
 public:
  RowParallelLinear(const ModuleScope& scope, const ModuleSpec& spec, TensorParallel tp);
  at::Tensor operator()(const at::Tensor& x, const TokenContext& tokens) const;
  at::Tensor operator()(const Activated& x, const TokenContext& tokens) const;
  at::Tensor of_swiglu(const at::Tensor& gate_up, const TokenContext& tokens) const;
  at::Tensor operator()(const RecomputableOutput& x, const TokenContext& tokens) const;

 private:
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
  LinearQuantizer* quantizer_ = nullptr;
  TensorParallel tp_;
};

}  // namespace ranklab
