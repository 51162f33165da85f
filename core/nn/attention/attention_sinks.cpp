#include "core/nn/attention/attention_sinks.h"

#include <ATen/ops/logaddexp.h>

#include <algorithm>
#include <vector>

#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// [B, heads, S], as a view: cuDNN's log-sum-exp has one more dimension, and the memory-efficient kernel's has padding
// after the S rows.
at::Tensor sums_by_query(const SoftmaxedHeads& results) {
  const at::Tensor& sums = results.log_sum_exp;
  return (sums.dim() == 4 ? sums.squeeze(-1) : sums).narrow(2, 0, results.out.size(2));
}

at::Tensor by_head(const at::Tensor& sinks, const at::Tensor& sums) {
  return sinks.to(sums.scalar_type()).view({1, -1, 1});
}

// The sums over the last dimension of a * b: [B, heads, S]. Processes a few heads at a time, because wide copies of all
// heads would take twice the memory of what the attention kernel itself keeps.
at::Tensor products_of_rows(const at::Tensor& a, const at::Tensor& b, at::ScalarType wide) {
  constexpr int64_t kHeads = 8;
  std::vector<at::Tensor> sums;
  for (int64_t head = 0; head < a.size(1); head += kHeads) {
    const int64_t count = std::min(kHeads, a.size(1) - head);
    sums.push_back((a.narrow(1, head, count).to(wide) * b.narrow(1, head, count).to(wide)).sum(-1));
  }
  return sums.size() == 1 ? sums[0] : at::cat(sums, 1);
}

}  // namespace

void report_kernel_results(const SoftmaxedHeads& results, const at::Tensor& queries) {
  TypeWatch* watch = type_watch_of_thread;
  if (watch == nullptr) return;
  watch->is_made_of(results.out, queries);
  watch->is_made_of(results.log_sum_exp, queries);
}

void join_sinks(const SoftmaxedHeads& results, const at::Tensor& sinks) {
  const at::Tensor sums = sums_by_query(results), sink = by_head(sinks, sums);
  const at::Tensor rest = at::sigmoid(sums - sink).unsqueeze(-1);
  without_scratch([&] { return results.out.mul_(rest); });  // a CPU widens all of it
  sums.copy_(at::logaddexp(sums, sink));
}

at::Tensor sink_grad(const SoftmaxedHeads& forward, const at::Tensor& grad_out, const at::Tensor& sinks) {
  const at::ScalarType wide = kernel_wide_type(grad_out);
  const at::Tensor sums = sums_by_query(forward), probability = (by_head(sinks, sums) - sums).exp_();
  return (probability * products_of_rows(grad_out, forward.out, wide))
      .sum(at::IntArrayRef{0, 2})
      .neg_()
      .to(sinks.scalar_type());
}

at::Tensor softmax_with_sinks(const at::Tensor& scores, const at::Tensor& sinks) {
  if (!sinks.defined()) return at::softmax(scores, -1);
  const at::Tensor sink =
      sinks.to(scores.scalar_type()).view({1, -1, 1, 1}).expand({scores.size(0), scores.size(1), scores.size(2), 1});
  return at::softmax(at::cat({scores, sink}, -1), -1).narrow(-1, 0, scores.size(-1));
}

}  // namespace ranklab
