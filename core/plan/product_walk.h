// The products of a linear layer as kernels and collectives: in the type of the parameters one GEMM each, in few bits
// each operand's rounding before it (core/parallel/linear_quantizer.h) and, where scales are of whole tensors or rows
// that ranks share out, the all_reduce of their largest magnitudes. Every linear module counts as quantized when the
// recipe quantizes any (exceptions by name are not walked), but for the head. Thread rule: pure.
#pragma once
#include "core/plan/step_shape.h"
#include "core/plan/step_walk.h"

namespace ranklab {

enum class ProductSplit { kColumn, kRow, kReplicated };

struct LayerProducts {
  int64_t tokens = 0;  // rows of x on this rank
  int64_t in = 0;      // features on this rank
  int64_t out = 0;
  ProductSplit split = ProductSplit::kColumn;
  bool quantized = true;  // if the recipe quantizes
};

class ProductWalk {
 public:
  // Both outlive this.
  ProductWalk(const StepShape& shape, StepVisitor& visitor) : s_(shape), v_(visitor) {}

  void forward(const LayerProducts& layer);
  void input_grad(const LayerProducts& layer);
  void weight_grad(const LayerProducts& layer);

  // One of the three products of the experts' rows, all experts together; `agreements`: scales that etp ranks agree on
  // for each of this rank's experts.
  void experts(int64_t rows, int64_t in, int64_t out, int agreements);
  // Scales of whole tensors on which ranks that share out an expert agree: of y, dx and dW of a column or row layer.
  struct Agreements {
    int forward = 0, input_grad = 0, weight_grad = 0;
  };
  Agreements expert_agreements(ProductSplit split) const;

  // Tokens before they are dispatched; bytes of a row of `width` numbers, of which the first are a token.
  void round_tokens(int64_t tokens);
  int64_t dispatched_row_bytes(int64_t width) const;
  // The largest magnitudes of a step, of all modules of these layers.
  void end_step(int64_t modules);

 private:
  struct Operand {
    const TensorPrecision& precision;
    int64_t rows = 0, cols = 0;
    bool along_columns = true;  // the product sums over columns
    bool rows_cut = false, cols_cut = false;
  };
  bool low(const LayerProducts& layer) const { return layer.quantized && s_.products.quantized(); }
  void round(const Operand& operand);
  void agree(int64_t numbers);
  void multiply(int64_t m, int64_t k, int64_t n, const TensorPrecision& left, const TensorPrecision& right);
  void plain(int64_t m, int64_t k, int64_t n);
  double row_bytes(int64_t rows, int64_t cols) const;

  const StepShape& s_;
  StepVisitor& v_;
};

}  // namespace ranklab
