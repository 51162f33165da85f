#include "core/nn/recurrent/state_space.h"

#include <vector>

#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/nn/recurrent/chunking.h"
#include "core/nn/rerun_function.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/spec/mamba_config.h"

namespace ranklab {
namespace {

// The recurrence from chunk to chunk: the state passes through a sequence's chunks one after another,
//   M_n+1 = decay_n M_n + added_n
// Cost: one pass over the states in each direction. Memory: M of every chunk. Legend: H heads of all sequences, N
// chunks, states of D elements.
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

// added [H, N, D], decay [H, N, 1]. state [H, D] is the state before the first chunk, and on return the state after the
// last one. Returns the state before each chunk [H, N, D]. No gradient flows to the first state.
at::Tensor state_scan(const at::Tensor& added, const at::Tensor& decay, at::Tensor& state) {
  const variable_list out = StateScan::apply(added, decay, state);
  state = out[1];
  return out[0];
}

// The inputs of the recurrence, [B, groups, heads of a group or 1, S, ...], in the type in which sums are computed.
struct StateOperands {
  at::Tensor x, b, c;
  at::Tensor step, decay;  // [.., 1]
  at::Tensor skip;         // D, [groups, heads of a group, 1, 1]
};

StateOperands state_operands(const StateSpaceInput& in, const StateSpaceShape& shape) {
  const at::ScalarType wide = kernel_wide_type(in.xbc);
  const int64_t positions = in.xbc.size(0), sequences = in.xbc.size(1), each = shape.heads / shape.groups;
  const auto rows = [&](const at::Tensor& x, int64_t heads, int64_t width) {
    return x.reshape({positions, sequences, shape.groups, heads, width}).permute({1, 2, 3, 0, 4}).to(wide);
  };
  const auto of_heads = [&](const at::Tensor& x) { return x.to(wide).view({shape.groups, each, 1, 1}); };
  const auto parts = in.xbc.split_with_sizes({shape.inner_width(), shape.group_width(), shape.group_width()}, -1);
  at::Tensor step = at::softplus(rows(in.dt, each, 1) + of_heads(in.dt_bias));
  if (shape.min_step > 0) step = step.clamp_min(shape.min_step);
  return {.x = rows(parts[0], each, shape.head_dim),
          .b = rows(parts[1], 1, shape.state_dim),
          .c = rows(parts[2], 1, shape.state_dim),
          .step = step,
          .decay = -of_heads(in.a_log).exp() * step,
          .skip = of_heads(in.d)};
}

// [B, groups, heads of a group, S, P] -> [S, B, heads P]
at::Tensor state_rows(const at::Tensor& x, at::ScalarType type) {
  return x.permute({3, 0, 1, 2, 4}).flatten(2).to(type);
}

// The outputs of the positions that follow `state` [B, heads, N, P], which is updated to the state after them.
at::Tensor run_chunks(const StateOperands& in, const at::Tensor& segment_SB, at::Tensor& state) {
  const Chunking chunks(in.x.size(3), kStateSpaceChunk);
  // Padding positions neither decay the state nor write to it.
  const at::Tensor v = chunks.chunked(in.x * in.step), b = chunks.chunked(in.b), c = chunks.chunked(in.c);
  const at::Tensor since_begin = chunks.chunked(in.decay).cumsum(-2);  // [B, groups, heads of a group, N, C, 1]
  const at::Tensor end = since_begin.narrow(-2, chunks.length - 1, 1);
  at::Tensor pairs = (since_begin - since_begin.transpose(-1, -2)).tril().exp().tril();
  at::Tensor carried = since_begin.exp(), to_end = (end - since_begin).exp(), through = end.exp();
  if (segment_SB.defined()) {
    const SegmentFactors same = chunks.factors_of(segment_SB, v.scalar_type());
    const at::Tensor before = same.before.unsqueeze(1);
    pairs = pairs * same.pairs.unsqueeze(1);
    carried = carried * before;
    to_end = to_end * same.end.unsqueeze(1);
    through = through * before.narrow(-2, chunks.length - 1, 1);
  }
  const at::Tensor within = (c.matmul(b.transpose(-1, -2)) * pairs).matmul(v);
  const at::Tensor added = b.transpose(-1, -2).matmul(v * to_end);  // [B, groups, heads of a group, N, Dn, P]
  const auto sizes = state.sizes().vec();
  at::Tensor of_heads = state.flatten(0, 1).flatten(1);
  const at::Tensor before = state_scan(added.flatten(0, 2).flatten(2), through.flatten(0, 2).flatten(2), of_heads);
  state = of_heads.view(sizes);
  const at::Tensor out = within + c.matmul(before.view(added.sizes())) * carried;
  return chunks.rows(out) + in.x * in.skip;
}

at::Tensor empty_state(const StateOperands& in) {
  return at::zeros({in.x.size(0), in.x.size(1) * in.x.size(2), in.b.size(-1), in.x.size(-1)}, in.x.options());
}

RerunCost state_space_cost(const StateSpaceInput& in, const StateSpaceShape& shape) {
  const double rows = static_cast<double>(in.xbc.size(0)) * static_cast<double>(in.xbc.size(1));
  const double flops = rows * state_space_flops(shape.heads, shape.groups, shape.head_dim, shape.state_dim);
  const auto element = static_cast<double>(in.xbc.itemsize());
  // Inputs and outputs are read or written once; one state per chunk is written and read.
  const double states = 2 * rows / static_cast<double>(kStateSpaceChunk) *
                        static_cast<double>(shape.heads * shape.head_dim * shape.state_dim) * element;
  const double bytes = bytes_of(in.xbc) + bytes_of(in.dt) + rows * static_cast<double>(shape.inner_width()) * element;
  // Backward recomputes the intermediates.
  return {.forward = {"state_space", flops, bytes + states},
          .backward = {"state_space_backward", 3 * flops, 2 * bytes + 3 * states},
          .dtype = dtype_of(in.xbc)};
}

StateSpaceInput state_space_input(const std::vector<at::Tensor>& in) { return {in[0], in[1], in[2], in[3], in[4]}; }

}  // namespace

at::Tensor state_space(const StateSpaceInput& in, const StateSpaceShape& shape, const at::Tensor& segment_SB) {
  const auto function = [shape, segment_SB](const std::vector<at::Tensor>& inputs) {
    const StateOperands operands = state_operands(state_space_input(inputs), shape);
    at::Tensor state = empty_state(operands);
    return state_rows(run_chunks(operands, segment_SB, state), inputs[0].scalar_type());
  };
  return rerun_function(function, {in.xbc, in.dt, in.a_log, in.dt_bias, in.d}, state_space_cost(in, shape));
}

at::Tensor state_space_after(const StateSpaceInput& in, const StateSpaceShape& shape, at::Tensor& state) {
  const KernelCost cost = state_space_cost(in, shape).forward;
  const CostScope scope(cost.name, cost.flops, cost.bytes, dtype_of(in.xbc));
  return state_rows(run_chunks(state_operands(in, shape), {}, state), in.xbc.scalar_type());
}

at::Tensor state_space_reference(const StateSpaceInput& in, const StateSpaceShape& shape,
                                 const at::Tensor& segment_SB) {
  const StateOperands o = state_operands(in, shape);
  at::Tensor state = at::zeros({o.x.size(0), o.x.size(1), o.x.size(2), o.b.size(-1), o.x.size(-1)}, o.x.options());
  std::vector<at::Tensor> out;
  for (int64_t s = 0; s < o.x.size(3); ++s) {
    const auto at = [s](const at::Tensor& x) { return x.select(3, s); };
    if (segment_SB.defined() && s > 0) {
      const at::Tensor same = (segment_SB.select(0, s) == segment_SB.select(0, s - 1)).to(state.scalar_type());
      state = state * same.view({-1, 1, 1, 1, 1});
    }
    const at::Tensor own = at(o.b).unsqueeze(-1) * (at(o.x) * at(o.step)).unsqueeze(-2);
    state = state * at(o.decay).exp().unsqueeze(-1) + own;
    out.push_back(at(o.c).unsqueeze(-2).matmul(state).squeeze(-2) + at(o.x) * o.skip.squeeze(2));
  }
  return state_rows(at::stack(out, 3), in.xbc.scalar_type());
}

}  // namespace ranklab
