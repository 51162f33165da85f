// The three products of one linear layer in few bits: y from x and W, dx from dy and W, dW from dy and x, each operand
// rounded as the layer's LinearPrecision says and multiplied in fp32 (on a GPU by its FP8 units where those can, else
// in the type of the result). Ranks that hold parts of a tensor agree on the largest magnitudes where its groups reach
// over them, so that the parts are those of the whole tensor rounded. Or, where the policy gives the layer a type of
// its own, the same products in that type. Cost: one or two passes over each operand, charged as kernels of a GPU with
// FP8 units; with tensor parallelism an all_reduce of one number (of a row's, by rows) for each operand whose groups
// are cut. Legend: T tokens, x [T, in], W [out, in], dy [T, out]. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/parallel/operand_rounding.h"
#include "core/parallel/tensor_parallel.h"
#include "core/parallel/token_place.h"
#include "core/precision/precision_policy.h"
#include "core/spec/module_spec.h"
#include "core/trace/precision_event.h"

namespace ranklab {

class QuantizerBook;

struct LinearForm {
  int64_t in = 0;  // of the whole layer
  int64_t out = 0;
  std::vector<int64_t> out_parts = {};  // ModuleSpec::out_parts
  ModuleSplit split = ModuleSplit::kReplicated;
  TensorParallel group = {};  // its ranks
  bool dispatched = false;    // its input came in the precision of the dispatch, if that has one
};

// The tokens of the rows of a product.
struct TokenRows {
  TokenPlace place = {};
  int64_t sequences = 0;  // rows are [S, sequences]; 0: of any tokens (experts), told apart by their numbers
};

class LinearQuantizer {
 public:
  LinearQuantizer(QuantizerBook& book, ModulePrecision precision, LinearForm form);

  at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const TokenRows& rows);
  at::Tensor input_grad(const at::Tensor& grad, const at::Tensor& weight, const TokenRows& rows);
  at::Tensor weight_grad(const at::Tensor& grad, const at::Tensor& x, const TokenRows& rows);

  const std::string& module() const { return precision_.module; }
  const LinearPrecision& precision() const { return precision_.linear; }
  // Delayed scaling: the largest magnitudes since the last call, by role.
  std::array<float, 3> take_amax();

 private:
  struct Use;  // of an operand in a product
  // An operand as it is multiplied: [rows, K], or with K first.
  struct Side {
    const TensorPrecision& precision;
    RoundedOperand operand;
    bool k_first = false;
  };
  RoundedOperand rounded(const at::Tensor& matrix, const TensorPrecision& precision, const Use& use);
  void note_amax(ScaleRule rule, TensorRole role, const RoundedOperand& operand);
  Side weight_side(const at::Tensor& weight, Along along, const TokenRows& rows);
  at::Tensor turned(const at::Tensor& matrix) const;
  at::Tensor product(const Side& a, const Side& b, at::ScalarType type) const;
  at::Tensor plain(const at::Tensor& a, const at::Tensor& b) const;
  OperandParts out_parts_as(bool rows, bool by_part) const;

  QuantizerBook& book_;
  ModulePrecision precision_;
  LinearForm form_;
  std::array<float, 3> amax_{};
  std::array<at::Tensor, 3> device_amax_{};  // [1], of a GPU
  std::array<int64_t, 3> noted_step_{-1, -1, -1};
};

}  // namespace ranklab
