#include "core/parallel/expert/grouped_linear.h"

#include <torch/custom_class.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/nn/custom_function.h"
#include "core/nn/gemm.h"
#include "core/parallel/deferred_grads.h"
#include "core/parallel/expert/expert_rows.h"
#include "core/parallel/expert/host_numbers.h"
#include "core/parallel/expert/product_cost.h"
#include "core/parallel/quantized/linear_quantizer.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// If quantized, the operands are also written and read again in low precision.
CostScope product_cost(const at::Tensor& rows, int64_t out, const at::TensorList& weights,
                       const std::vector<LinearQuantizer*>& quantizers) {
  constexpr double kBitsPerByte = 8;
  ProductCost cost = grouped_product_cost(rows.size(0), rows.size(1), out, weights.size(), rows.itemsize());
  const bool low = !quantizers.empty() && quantizers[0]->precision().weight.quantized();
  if (low) cost.bytes += 2 * cost.operand_elements * quantizers[0]->precision().weight.format->bits() / kBitsPerByte;
  if (low) cost.shape = cost.shape.of_bits(static_cast<int>(quantizers[0]->precision().weight.format->bits()));
  // The scales of blocks are also computed by one kernel per expert.
  if (low && quantizers[0]->precision().activation.granularity == Granularity::kTile) cost.shape.launches *= 2;
  return cost.scope(low ? DType::kFloat8 : dtype_of(rows.scalar_type()));
}

// The kernel reads 16 bytes at a time: rows of both sides must be multiples of that.
bool has_grouped_kernel(const at::Tensor& rows, int64_t out) {
  constexpr int64_t kTogether = 8;
  return rows.is_cuda() && rows.scalar_type() == at::kBFloat16 && rows.size(1) % kTogether == 0 && out % kTogether == 0;
}

// Equal counts are those of experts padded to their capacity, whose products a CUDA graph may contain: the numbers are
// then made on the device, since a graph would read the host's again.
at::Tensor ends_of(const std::vector<int64_t>& counts, const at::Device& device) {
  const int64_t first = counts.front(), all = first * static_cast<int64_t>(counts.size());
  if (first > 0 && std::ranges::all_of(counts, [=](int64_t count) { return count == first; }))
    return at::arange(first, all + 1, first, at::TensorOptions(at::kInt).device(device));
  const at::Tensor ends = host_numbers(static_cast<int64_t>(counts.size()), at::kInt, device);
  std::partial_sum(counts.begin(), counts.end(), ends.mutable_data_ptr<int32_t>(),
                   [](int64_t sum, int64_t count) { return sum + count; });
  return sent_to(device, ends);
}

std::vector<at::Tensor> transposed(at::TensorList weights) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& weight : weights) out.push_back(weight.t());
  return out;
}

// On shapes nothing has to be multiplied, and the cost is charged once around all experts; this saves time where a plan
// has thousands of experts. Products in fp16 are an exception: each has a temporary result (gemm.cpp), which counts in
// a plan's memory.
bool is_only_shapes(const at::Tensor& rows) { return only_shapes(rows) && rows.scalar_type() != at::kHalf; }

// Calls product(part of the result, expert, its rows) for each expert. RETURNS: the result [N, width].
template <typename Product>
at::Tensor by_expert(const at::Tensor& rows, const std::vector<int64_t>& counts, int64_t width,
                     const Product& product) {
  at::Tensor result = at::empty({rows.size(0), width}, rows.options());
  for_each_expert(counts, [&](size_t expert, int64_t begin, int64_t count) {
    product(result.narrow(0, begin, count), expert, rows.narrow(0, begin, count));
  });
  return result;
}

// Products of rows [N, I] with the matrices [I, O] of their experts.
at::Tensor products(const at::Tensor& rows, const std::vector<int64_t>& counts,
                    const std::vector<at::Tensor>& matrices) {
  const int64_t out = matrices[0].size(1);
  const CostScope cost = product_cost(rows, out, matrices, {});
  if (has_grouped_kernel(rows, out)) return at::_grouped_mm(rows, stacked(matrices), ends_of(counts, rows.device()));
  return by_expert(rows, counts, out, [&](const at::Tensor& result, size_t expert, const at::Tensor& own) {
    gemm_into(result, own, matrices[expert]);
  });
}

// The same for experts that may be quantized.
struct ExpertProducts {
  std::vector<LinearQuantizer*> quantizers;  // empty: none is
  TokenContext tokens = {};

  TokenRows rows() const { return {tokens, 0}; }

  at::Tensor forward(const at::Tensor& rows_NI, const std::vector<int64_t>& counts,
                     const std::vector<at::Tensor>& weights) const {
    if (quantizers.empty() && !is_only_shapes(rows_NI)) return products(rows_NI, counts, transposed(weights));
    const CostScope cost = product_cost(rows_NI, weights[0].size(0), weights, quantizers);
    if (quantizers.empty()) return at::empty({rows_NI.size(0), weights[0].size(0)}, rows_NI.options());
    return by_expert(rows_NI, counts, weights[0].size(0), [&](at::Tensor result, size_t expert, const at::Tensor& own) {
      result.copy_(quantizers[expert]->forward(own, weights[expert], rows()));
    });
  }
  at::Tensor input_grad(const at::Tensor& grad, const std::vector<int64_t>& counts,
                        const std::vector<at::Tensor>& weights) const {
    if (quantizers.empty() && !is_only_shapes(grad)) return products(grad, counts, weights);
    const CostScope cost = product_cost(grad, weights[0].size(1), weights, quantizers);
    if (quantizers.empty()) return at::empty({grad.size(0), weights[0].size(1)}, grad.options());
    return by_expert(grad, counts, weights[0].size(1), [&](at::Tensor result, size_t expert, const at::Tensor& own) {
      result.copy_(quantizers[expert]->input_grad(own, weights[expert], rows()));
    });
  }
  at::Tensor weight_grad(size_t expert, const at::Tensor& grad, const at::Tensor& own) const {
    return quantizers.empty() ? gemm(grad.t(), own) : quantizers[expert]->weight_grad(grad, own, rows());
  }
};

// grad^T rows [O, I] per expert.
std::vector<at::Tensor> weight_grads(const at::Tensor& grad, const at::Tensor& rows, const std::vector<int64_t>& counts,
                                     const std::vector<at::Tensor>& weights, const ExpertProducts& products) {
  const MemoryScope memory(MemoryCategory::kGradients);
  const CostScope cost = product_cost(rows, grad.size(1), weights, products.quantizers);
  std::vector<at::Tensor> out(weights.size());
  const bool only_shapes = products.quantizers.empty() && is_only_shapes(rows);
  for (size_t expert = 0; expert < out.size() && only_shapes; ++expert)
    out[expert] = at::empty(weights[expert].sizes(), grad.options());
  if (only_shapes) return out;
  // No product of the grouped kernel is over no rows: what it writes then is not documented.
  const bool all_have_rows = std::ranges::find(counts, 0) == counts.end();
  if (products.quantizers.empty() && has_grouped_kernel(rows, grad.size(1)) && all_have_rows) {
    out = at::_grouped_mm(grad.t(), rows, ends_of(counts, rows.device())).unbind();
  } else {
    for_each_expert(counts, [&](size_t expert, int64_t begin, int64_t count) {
      out[expert] = products.weight_grad(expert, grad.narrow(0, begin, count), rows.narrow(0, begin, count));
    });
  }
  for (size_t expert = 0; expert < out.size(); ++expert) {
    if (!out[expert].defined()) out[expert] = at::zeros_like(weights[expert]);
    if (TypeWatch* watch = type_watch_of_thread) watch->is_made_of(out[expert], grad);
  }
  return out;
}

// Tells the type checker about the product, because no operator that it follows does.
void note_product(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) {
  if (TypeWatch* watch = type_watch_of_thread) watch->is_product(result, operand, weight);
}

struct Kept : torch::CustomClassHolder {
  ExpertProducts products;
  // recomputes the rows from the saved tensor; null: the rows are saved
  decltype(Activated::compute) compute = nullptr;

  at::Tensor rows(const at::Tensor& kept) const { return compute != nullptr ? compute(kept) : kept; }
};

struct GroupedLinear : CustomFunction<GroupedLinear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, at::TensorList weights,
                            const std::vector<int64_t>& counts, const std::vector<LinearQuantizer*>& quantizers,
                            const TokenContext& tokens, const Activated& from) {
    variable_list saved = {from.compute != nullptr ? from.input : rows};
    saved.insert(saved.end(), weights.begin(), weights.end());
    ctx->save_for_backward(saved);
    ctx->saved_data["counts"] = counts;
    auto products = c10::make_intrusive<Kept>();
    products->products = {quantizers, tokens};
    products->compute = from.compute;
    ctx->saved_data["products"] = c10::IValue::make_capsule(products);
    at::Tensor out = products->products.forward(rows, counts, weights.vec());
    note_product(out, rows, weights[0]);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const std::vector<int64_t> counts = ctx->saved_data["counts"].toIntVector();
    const at::Tensor grad = grads[0].contiguous();
    const std::vector<at::Tensor> weights(saved.begin() + 1, saved.end());
    const auto kept = ctx->saved_data["products"].toCapsule();
    const Kept& how = static_cast<Kept&>(*kept);
    const ExpertProducts& products = how.products;
    variable_list out(1 + weights.size() + 4);
    if (ctx->needs_input_grad(0)) {
      out[0] = products.input_grad(grad, counts, weights);
      note_product(out[0], grad, weights[0]);
    }
    if (WeightGradQueue* queue = deferred_weight_grads()) {
      queue->push(weights, [grad, input = saved[0], counts, weights, kept] {
        const Kept& then = static_cast<Kept&>(*kept);
        return weight_grads(grad, then.rows(input), counts, weights, then.products);
      });
      return out;
    }
    std::vector<at::Tensor> made = weight_grads(grad, how.rows(saved[0]), counts, weights, products);
    std::move(made.begin(), made.end(), out.begin() + 1);
    return out;
  }
};

// The distance in bytes between neighbours; nullopt: it differs, or the kernel is not known to read them there.
std::optional<int64_t> distance_of(const std::vector<at::Tensor>& matrices) {
  constexpr int64_t kTogether = 16;
  constexpr int64_t kNear = 8;  // in one buffer, with an expert's other matrices between them
  const auto address = [](const at::Tensor& x) { return reinterpret_cast<intptr_t>(x.const_data_ptr()); };
  const at::Tensor& first = matrices[0];
  if (matrices.size() == 1) return static_cast<int64_t>(first.nbytes());
  const int64_t distance = address(matrices[1]) - address(first);
  for (size_t i = 0; i < matrices.size(); ++i) {
    const at::Tensor& each = matrices[i];
    const bool alike = each.sizes() == first.sizes() && each.strides() == first.strides();
    if (!alike || address(each) - address(first) != static_cast<int64_t>(i) * distance) return std::nullopt;
  }
  const auto bytes = static_cast<int64_t>(first.nbytes());
  const bool near = distance >= bytes && distance <= kNear * bytes && distance % kTogether == 0;
  return near ? std::optional(distance) : std::nullopt;
}

}  // namespace

at::Tensor stacked(const std::vector<at::Tensor>& matrices) {
  const at::Tensor& first = matrices[0];
  const std::optional<int64_t> distance = distance_of(matrices);
  if (!distance) return at::stack(matrices);
  const auto size = static_cast<int64_t>(matrices.size());
  return at::for_blob(first.data_ptr(), {size, first.size(0), first.size(1)})
      .strides({*distance / static_cast<int64_t>(first.itemsize()), first.stride(0), first.stride(1)})
      .options(first.options())
      .target_device(first.device())
      .make_tensor();
}

at::Tensor grouped_linear(const at::Tensor& rows_NI, const std::vector<int64_t>& counts,
                          const std::vector<at::Tensor>& weights_OI, const std::vector<LinearQuantizer*>& quantizers,
                          const TokenContext& tokens) {
  return GroupedLinear::apply(rows_NI, at::TensorList(weights_OI), counts, quantizers, tokens, Activated{});
}

at::Tensor grouped_linear(const Activated& rows_NI, const std::vector<int64_t>& counts,
                          const std::vector<at::Tensor>& weights_OI, const std::vector<LinearQuantizer*>& quantizers,
                          const TokenContext& tokens) {
  return GroupedLinear::apply(rows_NI.out, at::TensorList(weights_OI), counts, quantizers, tokens, rows_NI);
}

at::Tensor grouped_linear_reference(const at::Tensor& rows_NI, const std::vector<int64_t>& counts,
                                    const std::vector<at::Tensor>& weights_OI) {
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (size_t expert = 0; expert < counts.size(); ++expert) {
    parts.push_back(at::linear(rows_NI.narrow(0, begin, counts[expert]), weights_OI[expert]));
    begin += counts[expert];
  }
  return at::cat(parts);
}

}  // namespace ranklab
