#include "core/nn/recurrent/delta_scan.h"

#include "core/nn/custom_function.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

at::Tensor of_chunk(const at::Tensor& x, int64_t n) { return x.select(1, n); }

at::Tensor transposed(const at::Tensor& x) { return x.transpose(-1, -2); }

// The transition matrices decay_n - k_n w_n, which map a chunk's state to the next chunk's: [H, N, Dk, Dk].
at::Tensor transitions(const at::Tensor& k, const at::Tensor& w, const at::Tensor& decay) {
  const at::Tensor matrices = k.matmul(w).neg_();
  matrices.diagonal(0, -2, -1).add_(decay.squeeze(-1));
  return matrices;
}

struct DeltaScan : CustomFunction<DeltaScan> {
  // RETURNS: the outputs, and the state after the last chunk.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& u, const at::Tensor& w, const at::Tensor& q,
                               const at::Tensor& within, const at::Tensor& k, const at::Tensor& decay,
                               const at::Tensor& memory, DeltaLoop loop) {
    const int64_t heads = u.size(0), chunks = u.size(1);
    const at::Tensor memories = at::empty({chunks + 1, heads, k.size(2), u.size(3)}, u.options());
    const at::Tensor before = memories.narrow(0, 0, chunks).transpose(0, 1);
    memories[0].copy_(memory);
    at::Tensor written;
    if (loop == DeltaLoop::kProducts) {
      written = at::empty({heads, chunks, u.size(2), u.size(3)}, u.options());
      for (int64_t n = 0; n < chunks && !u.is_meta(); ++n) {
        at::Tensor of_n = of_chunk(written, n), next = memories[n + 1];
        of_n.copy_(of_chunk(u, n)).baddbmm_(of_chunk(w, n), memories[n], 1, -1);
        at::mul_out(next, memories[n], of_chunk(decay, n));
        next.baddbmm_(of_chunk(k, n), of_n);
      }
    } else {
      const at::Tensor steps = transitions(k, w, decay);
      memories.narrow(0, 1, chunks).copy_(k.matmul(u).transpose(0, 1));
      for (int64_t n = 0; n < chunks; ++n) memories[n + 1].baddbmm_(of_chunk(steps, n), memories[n]);
      written = u - w.matmul(before);
    }
    ctx->save_for_backward({w, q, within, k, decay, memories, written});
    ctx->saved_data["loop"] = static_cast<int64_t>(loop);
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
    // The gradients that reach each chunk's state and writes from its outputs; the loop adds those from later chunks.
    at::Tensor d_written = transposed(within).matmul(d_out), d_memory = transposed(q).matmul(d_out);
    const bool in_products = static_cast<DeltaLoop>(ctx->saved_data["loop"].toInt()) == DeltaLoop::kProducts;
    if (in_products) add_later(w, k, decay, d_written, d_memory);
    if (!in_products) add_later_by_transitions(w, k, decay, d_written, d_memory);
    // No gradient reaches the state after the last chunk.
    const at::Tensor d_after = at::zeros_like(d_memory);
    if (chunks > 1) d_after.narrow(1, 0, chunks - 1).copy_(d_memory.narrow(1, 1, chunks - 1));
    if (!in_products) d_written = d_written + transposed(k).matmul(d_after);
    return {d_written,
            d_written.matmul(transposed(before)).neg_(),
            d_out.matmul(transposed(before)),
            d_out.matmul(transposed(written)),
            d_after.matmul(transposed(written)),
            (d_after * before).sum({-2, -1}, /*keepdim=*/true),
            {},
            {}};
  }

  static void add_later(const at::Tensor& w, const at::Tensor& k, const at::Tensor& decay, const at::Tensor& d_written,
                        const at::Tensor& d_memory) {
    const int64_t chunks = w.size(1);
    for (int64_t n = chunks - 1; n >= 0 && !w.is_meta(); --n) {
      at::Tensor of_n = of_chunk(d_written, n), memory = of_chunk(d_memory, n);
      if (n + 1 < chunks) {
        const at::Tensor later = of_chunk(d_memory, n + 1);
        of_n.baddbmm_(transposed(of_chunk(k, n)), later);
        memory.addcmul_(later, of_chunk(decay, n));
      }
      memory.baddbmm_(transposed(of_chunk(w, n)), of_n, 1, -1);
    }
  }

  // The gradients of the states only.
  static void add_later_by_transitions(const at::Tensor& w, const at::Tensor& k, const at::Tensor& decay,
                                       const at::Tensor& d_written, at::Tensor& d_memory) {
    const at::Tensor steps = transitions(k, w, decay);
    d_memory = d_memory - transposed(w).matmul(d_written);
    for (int64_t n = w.size(1) - 2; n >= 0; --n)
      of_chunk(d_memory, n).baddbmm_(transposed(of_chunk(steps, n)), of_chunk(d_memory, n + 1));
  }
};

}  // namespace

DeltaLoop delta_loop(const at::Tensor& x) { return x.is_cuda() ? DeltaLoop::kTransitions : DeltaLoop::kProducts; }

at::Tensor delta_scan(const DeltaChunks& c, at::Tensor& memory, DeltaLoop loop) {
  const variable_list out = DeltaScan::apply(c.u, c.w, c.q, c.within, c.k, c.decay, memory, loop);
  memory = out[1];
  return out[0];
}

}  // namespace ranklab
