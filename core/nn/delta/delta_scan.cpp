#include "core/nn/delta/delta_scan.h"

#include "core/nn/custom_function.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

using torch::autograd::variable_list;

at::Tensor of_chunk(const at::Tensor& x, int64_t n) { return x.select(1, n); }

struct DeltaScan : CustomFunction<DeltaScan> {
  // RETURNS: the outputs, and the memory behind the last chunk.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& u, const at::Tensor& w, const at::Tensor& q,
                               const at::Tensor& within, const at::Tensor& k, const at::Tensor& decay,
                               const at::Tensor& memory) {
    const int64_t heads = u.size(0), chunks = u.size(1);
    const at::Tensor memories = at::empty({chunks + 1, heads, k.size(2), u.size(3)}, u.options());
    const at::Tensor written = at::empty({heads, chunks, u.size(2), u.size(3)}, u.options());
    memories[0].copy_(memory);
    for (int64_t n = 0; n < chunks && !u.is_meta(); ++n) {
      at::Tensor of_n = of_chunk(written, n), next = memories[n + 1];
      of_n.copy_(of_chunk(u, n)).baddbmm_(of_chunk(w, n), memories[n], 1, -1);
      at::mul_out(next, memories[n], of_chunk(decay, n));
      next.baddbmm_(of_chunk(k, n), of_n);
    }
    const at::Tensor before = memories.narrow(0, 0, chunks).transpose(0, 1);
    ctx->save_for_backward({w, q, within, k, decay, memories, written});
    const at::Tensor last = memories[chunks].clone();
    ctx->mark_non_differentiable({last});
    return {q.matmul(before) + within.matmul(written), last};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &w = saved[0], &q = saved[1], &within = saved[2], &k = saved[3], &decay = saved[4],
                     &memories = saved[5], &written = saved[6], &d_out = grads[0];
    const int64_t chunks = w.size(1);
    const at::Tensor before = memories.narrow(0, 0, chunks).transpose(0, 1);
    // What outputs ask of each chunk's memory and of what it wrote; the loop adds what later chunks ask.
    const at::Tensor d_written = within.transpose(-1, -2).matmul(d_out);
    const at::Tensor d_memory = q.transpose(-1, -2).matmul(d_out);
    for (int64_t n = chunks - 1; n >= 0 && !w.is_meta(); --n) {
      at::Tensor of_n = of_chunk(d_written, n), memory = of_chunk(d_memory, n);
      if (n + 1 < chunks) {
        const at::Tensor later = of_chunk(d_memory, n + 1);
        of_n.baddbmm_(of_chunk(k, n).transpose(-1, -2), later);
        memory.addcmul_(later, of_chunk(decay, n));
      }
      memory.baddbmm_(of_chunk(w, n).transpose(-1, -2), of_n, 1, -1);
    }
    // Nothing is asked of the last memory.
    const at::Tensor d_after = at::zeros_like(d_memory);
    if (chunks > 1) d_after.narrow(1, 0, chunks - 1).copy_(d_memory.narrow(1, 1, chunks - 1));
    return {d_written,
            d_written.matmul(before.transpose(-1, -2)).neg_(),
            d_out.matmul(before.transpose(-1, -2)),
            d_out.matmul(written.transpose(-1, -2)),
            d_after.matmul(written.transpose(-1, -2)),
            (d_after * before).sum({-2, -1}, /*keepdim=*/true),
            {}};
  }
};

}  // namespace

at::Tensor delta_scan(const DeltaChunks& c, at::Tensor& memory) {
  const variable_list out = DeltaScan::apply(c.u, c.w, c.q, c.within, c.k, c.decay, memory);
  memory = out[1];
  return out[0];
}

}  // namespace ranklab
