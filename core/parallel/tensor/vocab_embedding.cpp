#include "core/parallel/tensor/vocab_embedding.h"

#include <algorithm>
#include <vector>

#include "core/base/injected_bug.h"
#include "core/nn/custom_function.h"
#include "core/parallel/tensor/collectives.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// local_tokens: row of this rank's weight, or weight.size(0) for a token of another rank (none if `whole`).
struct OwnedRows : CustomFunction<OwnedRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& weight, const at::Tensor& local_tokens,
                            bool whole) {
    const int64_t rows = weight.size(0);
    ctx->save_for_backward({local_tokens});
    ctx->saved_data["rows"] = rows;
    if (whole) return at::embedding(weight, local_tokens);
    const at::Tensor foreign = local_tokens.eq(rows);
    at::Tensor out = at::embedding(weight, local_tokens.masked_fill(foreign, 0));
    out.masked_fill_(foreign.unsqueeze(-1), 0);
    if (TypeWatch* watch = type_watch_of_thread) watch->is_contraction(out, local_tokens, weight);
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const MemoryScope memory(MemoryCategory::kGradients);
    const int64_t rows = ctx->saved_data["rows"].toInt();
    const at::Tensor tokens = ctx->get_saved_variables()[0];
    // Tokens of other ranks map to the row past the end, the padding index, which gets no gradient.
    return {at::embedding_dense_backward(grads[0], tokens, rows + 1, rows, false).narrow(0, 0, rows), {}, {}};
  }
};

// As in Hugging Face transformers, the scale is rounded to the type of the parameters.
double rounded_to(at::ScalarType type, double value) {
  const NoCostScope no_cost;
  return at::scalar_tensor(value, at::TensorOptions(type)).item<double>();
}

// Wrong on purpose: reorders the parts of the sequence as if ranks were numbered in reverse
// (InjectedBug::kScatterWrongGroup).
at::Tensor for_other_ranks(const at::Tensor& rows, int64_t ranks) {
  std::vector<at::Tensor> parts = rows.chunk(ranks);
  std::reverse(parts.begin(), parts.end());
  return at::cat(parts);
}

}  // namespace

VocabParallelEmbedding::VocabParallelEmbedding(const ModuleScope& scope, const ModuleSpec& spec, TensorParallel tp,
                                               double scale)
    : weight_(&scope.make_weight(spec, tp.rank(), tp.size())),
      tp_(tp),
      scale_(rounded_to(scope.registry().dtype(), scale)) {}

at::Tensor VocabParallelEmbedding::operator()(const at::Tensor& tokens_SB, const TokenContext& context) const {
  const at::Tensor rows = lookup(tokens_SB, context);
  return scale_ == 1 ? rows : rows * scale_;
}

at::Tensor VocabParallelEmbedding::lookup(const at::Tensor& tokens_SB, const TokenContext& context) const {
  if (!tp_.active()) return OwnedRows::apply(weight_->data, tokens_SB, true);
  const auto [begin, end] = weight_->partition.ranges.at(0);
  const at::Tensor local = tokens_SB - begin;
  const at::Tensor foreign = at::logical_or(local.lt(0), local.ge(end - begin));
  const at::Tensor rows = OwnedRows::apply(weight_->data, local.masked_fill(foreign, end - begin), false);
  if (!tp_.over(context).sharded_sequence()) return reduce_from_tp(rows, *tp_.comm);
  const bool by_others = injected(InjectedBug::kScatterWrongGroup);
  return reduce_scatter_to_sp(by_others ? for_other_ranks(rows, tp_.size()) : rows, *tp_.comm);
}

}  // namespace ranklab
