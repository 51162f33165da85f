#include "core/parallel/expert/expert_mlp.h"

#include <algorithm>

#include "core/nn/activation.h"
#include "core/nn/custom_function.h"
#include "core/nn/gemm.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/parallel/deferred_grads.h"
#include "core/parallel/expert/product_cost.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// Size of a block's intermediate rows. Smaller blocks lose time around the products (3 % at half of this), larger ones
// gain nothing.
constexpr int64_t kBlockBytes = 2 << 20;
// Products of fewer rows are no faster. The last rows of an expert are split into a multiple of this and a remainder.
constexpr int64_t kRowsTogether = 32;

// Used by both forward and backward.
struct ExpertRows {
  at::Tensor rows_NH;
  std::vector<int64_t> counts;
  std::vector<at::Tensor> gate_up, down;

  int64_t hidden() const { return rows_NH.size(1); }
  int64_t up_width() const { return gate_up[0].size(0); }
  int64_t width() const { return down[0].size(1); }
  std::vector<ExpertBlock> blocks() const {
    std::vector<ExpertBlock> all =
        expert_blocks(counts, (up_width() + width()) * static_cast<int64_t>(rows_NH.itemsize()));
    if (!rows_NH.is_meta()) return all;
    // On meta tensors only the first, largest block of each expert runs: its memory is the peak of all.
    const auto same = std::ranges::unique(all, {}, &ExpertBlock::expert);
    all.erase(same.begin(), same.end());
    return all;
  }

  // Charges a product of rows [N, in] to [N, out] once for all blocks.
  void charge_product(int64_t in, int64_t out) const {
    const CostScope cost = grouped_product_cost(rows_NH.size(0), in, out, counts.size(), rows_NH.itemsize())
                               .scope(dtype_of(rows_NH.scalar_type()));
  }
  void charge_activation() const { charge_passes("swiglu", 1.5); }
  void charge_activation_grad() const { charge_passes("swiglu_backward", 2.5); }
  // Charges passes over the first product's output.
  void charge_passes(const char* kernel, double passes) const {
    const double bytes =
        passes * static_cast<double>(rows_NH.size(0) * up_width()) * static_cast<double>(rows_NH.itemsize());
    const CostScope cost(kernel, 0.0, bytes, dtype_of(rows_NH.scalar_type()));
  }
};

at::Tensor part(const at::Tensor& rows, const ExpertBlock& block) { return rows.narrow(0, block.begin, block.rows); }

at::Tensor forward_blocks(const ExpertRows& of, const at::Tensor& gate_up_N) {
  at::Tensor out = at::empty_like(of.rows_NH);
  {
    const NoCostScope free;
    for (const ExpertBlock& block : of.blocks()) {
      const at::Tensor gate_up = part(gate_up_N, block);
      gemm_into(gate_up, part(of.rows_NH, block), of.gate_up[block.expert].t());
      gemm_into(part(out, block), swiglu(gate_up), of.down[block.expert].t());
    }
  }
  of.charge_product(of.hidden(), of.up_width());
  of.charge_activation();
  of.charge_product(of.width(), of.hidden());
  return out;
}

// Sums of grad^T x [out, in] over the rows of each expert, block by block. A product with the smaller dimension first
// is faster (by 15 % at 704 x 128, oneDNN; linear_products.cpp has MKL's), so some sums are accumulated transposed.
class WeightSums {
 public:
  explicit WeightSums(const std::vector<at::Tensor>& weights)
      : weights_(weights), sums_(weights.size()), transposed_(weights[0].size(1) < weights[0].size(0)) {}

  void add(size_t expert, const at::Tensor& grad, const at::Tensor& x) {
    at::Tensor& sum = sums_[expert];
    const at::Tensor left = transposed_ ? x.t() : grad.t(), &right = transposed_ ? grad : x;
    if (sum.defined()) return gemm_add(sum, left, right);
    const MemoryScope memory(MemoryCategory::kGradients);
    sum = at::empty({left.size(0), right.size(1)}, weights_[expert].options());
    gemm_into(sum, left, right);
  }
  // Zeros for experts without tokens, so that gradient buckets start in the same order on all ranks.
  std::vector<at::Tensor> take() {
    const MemoryScope memory(MemoryCategory::kGradients);
    for (size_t expert = 0; expert < sums_.size(); ++expert) {
      at::Tensor& sum = sums_[expert];
      if (!sum.defined())
        sum = at::zeros_like(weights_[expert]);
      else if (transposed_)
        sum = sum.t().contiguous();
    }
    return std::move(sums_);
  }

 private:
  const std::vector<at::Tensor>& weights_;
  std::vector<at::Tensor> sums_;
  const bool transposed_;
};

// Computes all gradients of a block while it is in the cache. RETURNS: the gradients of the rows, of gate_up, of down.
variable_list backward_blocks(const ExpertRows& of, const at::Tensor& gate_up_N, const at::Tensor& grad_NH) {
  at::Tensor grad_rows = at::empty_like(of.rows_NH);
  variable_list out = {grad_rows};
  {
    const NoCostScope free;
    WeightSums up(of.gate_up), down(of.down);
    for (const ExpertBlock& block : of.blocks()) {
      const at::Tensor gate_up = part(gate_up_N, block), grad = part(grad_NH, block);
      const at::Tensor inner = gemm(grad, of.down[block.expert]);
      const at::Tensor grad_up = swiglu_grad_and_recompute(inner, gate_up);  // inner now holds the input of down
      down.add(block.expert, grad, inner);
      up.add(block.expert, grad_up, part(of.rows_NH, block));
      gemm_into(part(grad_rows, block), grad_up, of.gate_up[block.expert]);
    }
    for (WeightSums* sums : {&up, &down})
      for (at::Tensor& sum : sums->take()) out.push_back(std::move(sum));
  }
  of.charge_product(of.hidden(), of.width());
  of.charge_activation();
  of.charge_product(of.width(), of.hidden());
  of.charge_activation_grad();
  of.charge_product(of.up_width(), of.hidden());
  of.charge_product(of.hidden(), of.up_width());
  return out;
}

// --- The same in two steps: the rows' gradient now, the weights' later, with the same blocks in the same order. ---
at::Tensor rows_grad(const ExpertRows& of, const at::Tensor& gate_up_N, const at::Tensor& grad_NH,
                     const at::Tensor& grad_up_N) {
  at::Tensor grad_rows = at::empty_like(of.rows_NH);
  {
    const NoCostScope free;
    for (const ExpertBlock& block : of.blocks()) {
      const at::Tensor inner = gemm(part(grad_NH, block), of.down[block.expert]);
      part(grad_up_N, block).copy_(swiglu_grad(inner, part(gate_up_N, block)));
      gemm_into(part(grad_rows, block), part(grad_up_N, block), of.gate_up[block.expert]);
    }
  }
  of.charge_product(of.hidden(), of.width());
  of.charge_activation_grad();
  of.charge_product(of.up_width(), of.hidden());
  return grad_rows;
}

// The weights' gradients: calls add(sums, block) for all blocks.
template <typename Add>
std::vector<at::Tensor> weight_sums(const ExpertRows& of, const std::vector<at::Tensor>& weights, const Add& add) {
  const NoCostScope free;
  WeightSums sums(weights);
  for (const ExpertBlock& block : of.blocks()) add(sums, block);
  return sums.take();
}

at::Tensor backward_in_halves(const ExpertRows& of, const at::Tensor& gate_up_N, const at::Tensor& grad_NH,
                              WeightGradQueue& queue) {
  const at::Tensor grad_up_N = at::empty_like(gate_up_N);
  at::Tensor grad_rows = rows_grad(of, gate_up_N, grad_NH, grad_up_N);
  queue.push(of.down, [of, gate_up_N, grad_NH] {
    of.charge_activation();
    of.charge_product(of.width(), of.hidden());
    return weight_sums(of, of.down, [&](WeightSums& sums, const ExpertBlock& block) {
      sums.add(block.expert, part(grad_NH, block), swiglu(part(gate_up_N, block)));
    });
  });
  queue.push(of.gate_up, [of, grad_up_N] {
    of.charge_product(of.hidden(), of.up_width());
    return weight_sums(of, of.gate_up, [&](WeightSums& sums, const ExpertBlock& block) {
      sums.add(block.expert, part(grad_up_N, block), part(of.rows_NH, block));
    });
  });
  return grad_rows;
}

struct ExpertMlp : CustomFunction<ExpertMlp> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, at::TensorList gate_up, at::TensorList down,
                            const std::vector<int64_t>& counts) {
    const ExpertRows of{rows, counts, gate_up.vec(), down.vec()};
    const at::Tensor gate_up_N = at::empty({rows.size(0), of.up_width()}, rows.options());
    at::Tensor out = forward_blocks(of, gate_up_N);
    if (TypeWatch* watch = type_watch_of_thread) watch->is_contraction(out, rows, of.down[0]);
    variable_list saved = {rows, gate_up_N};
    saved.insert(saved.end(), gate_up.begin(), gate_up.end());
    saved.insert(saved.end(), down.begin(), down.end());
    ctx->save_for_backward(saved);
    ctx->saved_data["counts"] = counts;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const std::vector<int64_t> counts = ctx->saved_data["counts"].toIntVector();
    const auto weights = saved.begin() + 2, middle = weights + static_cast<std::ptrdiff_t>(counts.size());
    const ExpertRows of{saved[0], counts, {weights, middle}, {middle, saved.end()}};
    const at::Tensor grad = grads[0].contiguous();
    variable_list out;
    if (WeightGradQueue* queue = deferred_weight_grads())
      out = {backward_in_halves(of, saved[1], grad, *queue)};
    else
      out = backward_blocks(of, saved[1], grad);
    out.resize(1 + 2 * counts.size() + 1);
    return out;
  }
};

}  // namespace

bool is_charged_as_blocks(const at::Tensor& rows_NH) {
  return rows_NH.scalar_type() == at::kFloat || rows_NH.scalar_type() == at::kDouble;
}

bool has_expert_blocks(const at::Tensor& rows_NH) { return as_on_cpu(rows_NH) && is_charged_as_blocks(rows_NH); }

at::Tensor expert_mlp(const at::Tensor& rows_NH, const std::vector<int64_t>& counts,
                      const std::vector<at::Tensor>& gate_up, const std::vector<at::Tensor>& down) {
  return ExpertMlp::apply(rows_NH, at::TensorList(gate_up), at::TensorList(down), counts);
}

std::vector<ExpertBlock> expert_blocks(const std::vector<int64_t>& counts, int64_t bytes_of_a_row) {
  const auto whole = [](int64_t rows) { return rows / kRowsTogether * kRowsTogether; };
  const int64_t most = std::max(whole(kBlockBytes / bytes_of_a_row), kRowsTogether);
  std::vector<ExpertBlock> blocks;
  int64_t begin = 0;
  for (size_t expert = 0; expert < counts.size(); ++expert) {
    for (int64_t left = counts[expert]; left > 0;) {
      const int64_t rows = left >= most ? most : left >= kRowsTogether ? whole(left) : left;
      blocks.push_back({expert, begin, rows});
      begin += rows;
      left -= rows;
    }
  }
  return blocks;
}

}  // namespace ranklab
