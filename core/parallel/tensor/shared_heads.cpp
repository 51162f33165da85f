#include "core/parallel/tensor/shared_heads.h"

#include "core/base/injected_bug.h"
#include "core/nn/custom_function.h"
#include "core/parallel/saved_group.h"
#include "core/sim/aten.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

struct GatherKeyValues : CustomFunction<GatherKeyValues> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv, int64_t queries, Communicator& copies) {
    save_group(ctx, copies);
    ctx->saved_data["queries"] = queries;
    const int64_t s = qkv.size(0), b = qkv.size(1), part = (qkv.size(2) - queries) / 2;
    const at::Tensor mine = qkv.narrow(2, queries, 2 * part).contiguous();
    const at::Tensor all = copies.all_gather(mine).view({copies.size(), s, b, 2, part});
    const at::Tensor whole = all.permute({1, 2, 3, 0, 4}).reshape({s, b, 2 * part * copies.size()});
    return at::cat({qkv.narrow(2, 0, queries), whole}, 2);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    Communicator& copies = saved_group(ctx);
    const int64_t queries = ctx->saved_data["queries"].toInt();
    const at::Tensor& grad = grads[0];
    const int64_t s = grad.size(0), b = grad.size(1), part = (grad.size(2) - queries) / 2 / copies.size();
    const at::Tensor whole = grad.narrow(2, queries, 2 * part * copies.size()).view({s, b, 2, copies.size(), part});
    // Each copy's query heads have used it.
    if (TypeWatch* watch = type_watch_of_thread) watch->is_partial_over(whole, copies.group().axis);
    const at::Tensor parts = whole.permute({3, 0, 1, 2, 4}).reshape({copies.size() * s, b, 2 * part});
    const at::Tensor sum =
        injected(InjectedBug::kKvHeadsUnreduced) ? parts.narrow(0, copies.rank() * s, s) : copies.reduce_scatter(parts);
    return {at::cat({grad.narrow(2, 0, queries), sum}, 2), {}, {}};
  }
};

}  // namespace

at::Tensor gather_key_values(const at::Tensor& qkv, int64_t queries, Communicator& copies) {
  return GatherKeyValues::apply(qkv, queries, copies);
}

}  // namespace ranklab
