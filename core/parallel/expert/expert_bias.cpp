#include "core/parallel/expert/expert_bias.h"

#include "core/nn/custom_function.h"
#include "core/parallel/deferred_grads.h"
#include "core/parallel/expert/expert_rows.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// Charges one kernel for all experts, like a fused one, that makes this many passes over the rows.
CostScope pass_cost(const char* name, const at::Tensor& rows, double passes) {
  return {name, 0, passes * static_cast<double>(rows.nbytes()), dtype_of(rows.scalar_type())};
}

void note_made_of(const at::Tensor& result, const at::Tensor& operand) {
  if (TypeWatch* watch = type_watch_of_thread) watch->is_made_of(result, operand);
}

// The sum over each expert's rows [O].
std::vector<at::Tensor> sums_by_expert(const at::Tensor& grad_NO, const std::vector<int64_t>& counts) {
  const MemoryScope memory(MemoryCategory::kGradients);
  const CostScope cost = pass_cost("expert_bias_grad", grad_NO, 1);
  std::vector<at::Tensor> sums;
  int64_t begin = 0;
  for (const int64_t count : counts) {
    // The sum of no rows is zero. On shapes nothing needs to be added up, which saves time where a plan has thousands
    // of experts.
    sums.push_back(only_shapes(grad_NO) ? at::empty({grad_NO.size(1)}, grad_NO.options())
                                        : grad_NO.narrow(0, begin, count).sum(0));
    note_made_of(sums.back(), grad_NO);
    begin += count;
  }
  return sums;
}

// For type checking, a separate tensor: the bias is the same on all ranks, but here it is one rank's contribution to a
// sum.
at::Tensor summand(const at::Tensor& bias, BiasUse use) {
  TypeWatch* watch = type_watch_of_thread;
  if (watch == nullptr || use != BiasUse::kAddForGroup) return bias;
  const at::Tensor own = bias.clone();
  watch->is_partial_over(own, Axis::kEtp);
  return own;
}

struct AddExpertBiases : CustomFunction<AddExpertBiases> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, at::TensorList biases,
                            const std::vector<int64_t>& counts, BiasUse use) {
    ctx->saved_data["counts"] = counts;
    ctx->save_for_backward(biases.vec());  // deferred gradients are accumulated into them
    if (use == BiasUse::kLeaveToPeer) return rows.detach();
    const CostScope cost = pass_cost("expert_bias", rows, 2);
    at::Tensor out = at::empty_like(rows);
    if (!only_shapes(rows))
      for_each_expert(counts, [&](size_t expert, int64_t begin, int64_t count) {
        at::Tensor part = out.narrow(0, begin, count);
        at::add_out(part, rows.narrow(0, begin, count), summand(biases[expert], use));
      });
    note_made_of(out, rows);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const std::vector<int64_t> counts = ctx->saved_data["counts"].toIntVector();
    const variable_list biases = ctx->get_saved_variables();
    variable_list out(1 + biases.size() + 2);
    out[0] = grads[0];
    if (WeightGradQueue* queue = deferred_weight_grads()) {
      queue->push(biases, [grad = grads[0], counts] { return sums_by_expert(grad, counts); });
      return out;
    }
    std::vector<at::Tensor> sums = sums_by_expert(grads[0], counts);
    std::move(sums.begin(), sums.end(), out.begin() + 1);
    return out;
  }
};

}  // namespace

at::Tensor add_expert_biases(const at::Tensor& rows_NO, const std::vector<int64_t>& counts,
                             const std::vector<at::Tensor>& biases_O, BiasUse use) {
  if (biases_O.empty()) return rows_NO;
  return AddExpertBiases::apply(rows_NO, at::TensorList(biases_O), counts, use);
}

}  // namespace ranklab
