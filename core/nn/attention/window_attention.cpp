#include "core/nn/attention/window_attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/nn/attention/cpu_flash_attention.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

struct Block {
  int64_t query, queries, key, keys;  // first query and key, and how many of each
};

std::vector<Block> blocks_of(int64_t seq, int64_t window) {
  constexpr int64_t kLeast = 128;  // smaller blocks are mostly overhead
  const int64_t size = std::max(window, kLeast);
  std::vector<Block> blocks;
  for (int64_t first = 0; first < seq; first += size) {
    const int64_t count = std::min(size, seq - first), key = std::max<int64_t>(0, first - window + 1);
    blocks.push_back({first, count, key, first + count - key});
  }
  return blocks;
}

// The mask to be added to scores: 0 or -infinity.
at::Tensor hidden(const Block& b, int64_t window, const at::TensorOptions& options) {
  const at::Tensor seen = window_mask(b.query, b.queries, b.key, b.keys, window, options.device());
  return at::zeros(seen.sizes(), options).masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
}

}  // namespace

at::Tensor window_mask(int64_t first_query, int64_t queries, int64_t first_key, int64_t keys, int64_t window,
                       c10::Device device) {
  const auto options = at::TensorOptions(at::kLong).device(device);
  const at::Tensor query = at::arange(first_query, first_query + queries, options).unsqueeze(1);
  const at::Tensor key = at::arange(first_key, first_key + keys, options);
  return key.le(query).logical_and(key.gt(query - window));
}

SoftmaxedHeads window_attention(const SoftmaxHeads& in, int64_t window, std::optional<double> scale) {
  std::vector<at::Tensor> out, log_sum_exp;
  for (const Block& b : blocks_of(in.q.size(2), window)) {
    const SoftmaxHeads rows{in.q.narrow(2, b.query, b.queries), in.k.narrow(2, b.key, b.keys),
                            in.v.narrow(2, b.key, b.keys)};
    const SoftmaxedHeads block = cpu_flash_attention(rows, {false, hidden(b, window, in.q.options()), scale});
    out.push_back(block.out);
    log_sum_exp.push_back(block.log_sum_exp);
  }
  return {at::cat(out, 2), at::cat(log_sum_exp, 2)};
}

SoftmaxHeads window_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                   int64_t window, std::optional<double> scale) {
  SoftmaxHeads grads{at::empty_like(in.q), at::zeros_like(in.k), at::zeros_like(in.v)};
  for (const Block& b : blocks_of(in.q.size(2), window)) {
    const auto of_queries = [&](const at::Tensor& x) { return x.narrow(2, b.query, b.queries); };
    const auto of_keys = [&](const at::Tensor& x) { return x.narrow(2, b.key, b.keys); };
    const SoftmaxHeads rows{of_queries(in.q), of_keys(in.k), of_keys(in.v)};
    const SoftmaxHeads d =
        cpu_flash_attention_grad(rows, {of_queries(forward.out), of_queries(forward.log_sum_exp)}, of_queries(grad_out),
                                 {false, hidden(b, window, in.q.options()), scale});
    of_queries(grads.q).copy_(d.q);
    of_keys(grads.k).add_(d.k);
    of_keys(grads.v).add_(d.v);
  }
  return grads;
}

}  // namespace ranklab
