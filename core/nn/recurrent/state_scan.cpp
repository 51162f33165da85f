#include "core/nn/recurrent/state_scan.h"

#include "core/nn/custom_function.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

using torch::autograd::variable_list;

struct StateScan : CustomFunction<StateScan> {
  // RETURNS: the states before the chunks, and the state after the last one.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& added, const at::Tensor& decay,
                               const at::Tensor& state) {
    const int64_t chunks = added.size(1);
    const at::Tensor states = at::empty({chunks + 1, added.size(0), added.size(2)}, added.options());
    states[0].copy_(state);
    for (int64_t n = 0; n < chunks && !added.is_meta(); ++n) {
      at::Tensor next = states[n + 1];
      at::mul_out(next, states[n], decay.select(1, n)).add_(added.select(1, n));
    }
    const at::Tensor before = states.narrow(0, 0, chunks).transpose(0, 1), last = states[chunks].clone();
    ctx->save_for_backward({decay, before});
    ctx->mark_non_differentiable({last});
    return {before.contiguous(), last};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &decay = saved[0], &before = saved[1], &d_before = grads[0];
    const int64_t chunks = before.size(1);
    // A chunk contributes to the state after it. No gradient reaches the state after the last chunk.
    const at::Tensor d_behind = at::empty({chunks, before.size(0), before.size(2)}, before.options());
    d_behind[chunks - 1].zero_();
    for (int64_t n = chunks - 1; n > 0 && !before.is_meta(); --n) {
      at::Tensor earlier = d_behind[n - 1];
      at::mul_out(earlier, d_behind[n], decay.select(1, n)).add_(d_before.select(1, n));
    }
    const at::Tensor d_added = d_behind.transpose(0, 1);
    return {d_added, (d_added * before).sum(-1, /*keepdim=*/true), {}};
  }
};

}  // namespace

at::Tensor state_scan(const at::Tensor& added, const at::Tensor& decay, at::Tensor& state) {
  const variable_list out = StateScan::apply(added, decay, state);
  state = out[1];
  return out[0];
}

}  // namespace ranklab
