// The three quantized products of a linear layer: y from x and W, dx from dy and W, dW from dy and x. Each operand is
// rounded as the layer's LinearPrecision says; products are in fp32 (on a GPU they run on its FP8 units if these
// support the operands, else in the type of the result). Ranks that hold shards of a tensor agree on the amax of
// scaling groups that span them, so that their shards equal those of the quantized whole tensor. If the policy gives
// the layer only a compute type, the products are in that type. Cost: one or two passes over each operand, charged as
// kernels of a GPU with FP8 units; with tensor parallelism an all_reduce of one number (with row scales one per row)
// for each operand whose groups span ranks. On a GPU, what KeptRounding holds is neither computed nor agreed on again.
// The host does both again, and the virtual clock charges for that on either device; ranks that share a GPU therefore
// do exchange the numbers again. Legend: T tokens, x [T, in], W [out, in], dy [T, out]. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/parallel/quantized/operand_rounding.h"
#include "core/parallel/tensor_parallel.h"
#include "core/parallel/token_context.h"
#include "core/precision/precision_policy.h"
#include "core/spec/module_spec.h"
#include "core/trace/precision_event.h"

namespace ranklab {

class QuantizerBook;

struct LinearForm {
  int64_t in = 0;  // width of the unsharded layer
  int64_t out = 0;
  std::vector<int64_t> out_parts = {};  // ModuleSpec::out_parts
  ModuleSplit split = ModuleSplit::kReplicated;
  TensorParallel group = {};  // the ranks over which it is sharded or replicated
  bool dispatched = false;    // its input was already rounded to the dispatch precision, if one is set
};

// What rounding the operands of one product leaves for later products of the same tensors, on a GPU and for scales of
// whole tensors: no further pass for the amax is needed, and the gradient's codes are written for both of its products
// at once.
struct KeptRounding {
  at::Tensor activation_scale = {}, weight_scale = {};  // [1], from the forward pass
  RoundedOperand grad = {};                             // for the weight's gradient, which consumes it
};

// `kept`, if given, must be the same object in the products of one forward pass and its backward pass.
class LinearQuantizer {
 public:
  LinearQuantizer(QuantizerBook& book, ModulePrecision precision, LinearForm form);

  at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const TokenRows& rows,
                     KeptRounding* kept = nullptr);
  // `keeps_grad`: weight_grad() for the same gradient follows immediately.
  at::Tensor input_grad(const at::Tensor& grad, const at::Tensor& weight, const TokenRows& rows,
                        KeptRounding* kept = nullptr, bool keeps_grad = false);
  at::Tensor weight_grad(const at::Tensor& grad, const at::Tensor& x, const TokenRows& rows,
                         KeptRounding* kept = nullptr);

  const std::string& module() const { return precision_.module; }
  const LinearPrecision& precision() const { return precision_.linear; }
  // Delayed scaling: the amax of each role since the last call.
  std::array<float, 3> take_amax();

 private:
  struct Use;  // how a product uses an operand
  enum class PartBounds;
  // An operand of a product.
  struct Side {
    const TensorPrecision& precision;
    RoundedOperand operand;
  };
  RoundedOperand rounded(const at::Tensor& matrix, const TensorPrecision& precision, const Use& use);
  void note_amax(ScaleRule rule, TensorRole role, const RoundedOperand& operand);
  Use activation_use(Along along, const TokenRows& rows) const;
  Use grad_use(Along along, const char* product, const TokenRows& rows) const;
  Side weight_side(const at::Tensor& weight, Along along, const TokenRows& rows, KeptRounding* kept);
  Side grad_side(const at::Tensor& grad, const TokenRows& rows, KeptRounding* kept);
  // The ranks that hold the other tokens, where a layer with an unsharded weight sees only a part of them; null: none.
  Communicator* sharded_tokens(const TokenRows& rows) const;
  at::Tensor transformed(const at::Tensor& matrix) const;
  at::Tensor product(const Side& a, const Side& b, at::ScalarType type) const;
  at::Tensor plain(const at::Tensor& a, const at::Tensor& b) const;
  // The fused parts of the output, if `wanted`; empty if groups of `group` elements end at the parts' boundaries
  // anyway.
  OperandParts out_parts_as(bool wanted, PartBounds bounds, int64_t group) const;
  // This rank's columns of activations and weights, `count`, among those of all ranks; empty if it has all of them.
  OperandParts own_inputs(int64_t count) const;
  NoiseStream noise_stream(const at::Tensor& matrix, const Use& use) const;

  QuantizerBook& book_;
  ModulePrecision precision_;
  LinearForm form_;
  std::array<float, 3> amax_{};
  // [1] each, on a device that rounds; allocated once, so that CUDA graphs find them at the same address
  std::array<at::Tensor, 3> device_amax_{};
  std::array<int64_t, 3> noted_step_{-1, -1, -1};
};

}  // namespace ranklab
