#include "core/nn/recurrent/gated_delta_rule.h"

#include <cmath>
#include <vector>

#include "core/nn/kernels/kernel_path.h"
#include "core/nn/recurrent/chunking.h"
#include "core/nn/recurrent/delta_scan.h"
#include "core/nn/rerun_function.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/spec/linear_attention_config.h"

namespace ranklab {
namespace {

constexpr double kLengthEpsilon = 1e-6;  // as in the kernels of flash-linear-attention

at::Tensor of_length_one(const at::Tensor& x) {
  return x * (x.square().sum(-1, /*keepdim=*/true) + kLengthEpsilon).rsqrt();
}

// The inputs of the recurrence, [B, Hv, S, ...], in the type in which sums are computed.
struct Operands {
  at::Tensor q, k, v;  // [.., Dk], [.., Dk], [.., Dv]; queries are already scaled
  at::Tensor decay;    // g
  at::Tensor beta;
};

Operands operands_of(const DeltaInput& in, const DeltaShape& shape) {
  const at::ScalarType wide = kernel_wide_type(in.qkv);
  const int64_t positions = in.qkv.size(0), sequences = in.qkv.size(1), copies = shape.value_heads / shape.key_heads;
  const auto heads = [&](const at::Tensor& x, int64_t count, int64_t width) {
    return x.reshape({positions, sequences, count, width}).permute({1, 2, 0, 3}).to(wide);
  };
  const auto for_values = [&](const at::Tensor& x) {
    if (copies == 1) return x;
    return x.unsqueeze(2).expand({-1, -1, copies, -1, -1}).reshape({sequences, shape.value_heads, positions, -1});
  };
  const auto parts = in.qkv.split_with_sizes({shape.key_width(), shape.key_width(), shape.value_width()}, -1);
  const auto gates = in.gates.to(wide).permute({1, 2, 0}).split(shape.value_heads, 1);
  const at::Tensor step = at::softplus(gates[1] + in.dt_bias.to(wide).unsqueeze(-1));
  const double scale = 1 / std::sqrt(static_cast<double>(shape.key_dim));
  return {.q = for_values(of_length_one(heads(parts[0], shape.key_heads, shape.key_dim)) * scale),
          .k = for_values(of_length_one(heads(parts[1], shape.key_heads, shape.key_dim))),
          .v = heads(parts[2], shape.value_heads, shape.value_dim),
          .decay = -in.a_log.to(wide).exp().unsqueeze(-1) * step,
          .beta = at::sigmoid(gates[0])};
}

// [B, Hv, S, Dv] -> [S, B, Hv Dv]
at::Tensor as_rows(const at::Tensor& x, at::ScalarType type) { return x.permute({2, 0, 1, 3}).flatten(2).to(type); }

class Chunks {
 public:
  Chunks(const Operands& in, const at::Tensor& segment_SB) : chunks_(in.q.size(2), kDeltaChunk) {
    if (segment_SB.defined()) factors_ = chunks_.factors_of(segment_SB, in.q.scalar_type());
    // Padding positions neither decay the state nor write to it.
    const at::Tensor q = chunks_.chunked(in.q), k = chunks_.chunked(in.k), v = chunks_.chunked(in.v);
    const at::Tensor decay = chunks_.chunked(in.decay.unsqueeze(-1)), beta = chunks_.chunked(in.beta.unsqueeze(-1));
    const at::Tensor since_begin = decay.cumsum(-2);  // [B, Hv, N, C, 1]
    const at::Tensor end = since_begin.narrow(-2, chunks_.length - 1, 1);
    at::Tensor pairs = (since_begin - since_begin.transpose(-1, -2)).tril().exp().tril();
    at::Tensor carried = since_begin.exp(), to_end = (end - since_begin).exp();
    memory_factor_ = end.exp();
    if (factors_.pairs.defined()) {
      pairs = pairs * factors_.pairs;
      carried = carried * factors_.before;
      to_end = to_end * factors_.end;
      memory_factor_ = memory_factor_ * factors_.before.narrow(-2, chunks_.length - 1, 1);
    }
    // What each position writes depends on what earlier positions of the chunk write, which gives a triangular system.
    const at::Tensor k_beta = k * beta;
    const at::Tensor system = k_beta.matmul(k.transpose(-1, -2)) * pairs;
    const at::Tensor solved = at::linalg_solve_triangular(system, at::cat({v * beta, k_beta * carried}, -1),
                                                          /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
    written_ = solved.narrow(-1, 0, v.size(-1));
    read_keys_ = solved.narrow(-1, v.size(-1), k.size(-1));
    within_ = q.matmul(k.transpose(-1, -2)) * pairs;
    queries_ = q * carried;
    keys_to_end_ = (k * to_end).transpose(-1, -2);
  }

  // The outputs [B, Hv, S, Dv] of the positions that follow the state `memory`, which is updated to the state after
  // them.
  at::Tensor run(at::Tensor& memory) const {
    const auto sizes = memory.sizes().vec();
    const auto heads = [](const at::Tensor& x) { return x.flatten(0, 1); };
    at::Tensor of_heads = heads(memory);
    const at::Tensor out = delta_scan({.u = heads(written_),
                                       .w = heads(read_keys_),
                                       .q = heads(queries_),
                                       .within = heads(within_),
                                       .k = heads(keys_to_end_),
                                       .decay = heads(memory_factor_)},
                                      of_heads, delta_loop(of_heads));
    memory = of_heads.view(sizes);
    const at::Tensor rows = chunks_.rows(out);
    return rows.view({sizes[0], sizes[1], rows.size(1), rows.size(2)});
  }

 private:
  Chunking chunks_;
  SegmentFactors factors_;
  at::Tensor written_, read_keys_, within_, queries_, keys_to_end_, memory_factor_;
};

at::Tensor empty_memory(const Operands& in) {
  return at::zeros({in.q.size(0), in.q.size(1), in.q.size(-1), in.v.size(-1)}, in.q.options());
}

RerunCost cost_of(const DeltaInput& in, const DeltaShape& shape) {
  const double rows = static_cast<double>(in.qkv.size(0)) * static_cast<double>(in.qkv.size(1));
  const auto heads = static_cast<double>(shape.value_heads);
  const double flops = rows * heads * delta_rule_flops(shape.key_dim, shape.value_dim);
  // Inputs and outputs are read or written once; the solutions of the system and one matrix per chunk are written and
  // read.
  const double solved = rows * heads * static_cast<double>(shape.key_dim + shape.value_dim);
  const double matrices =
      rows / static_cast<double>(kDeltaChunk) * heads * static_cast<double>(shape.key_dim * shape.value_dim);
  const double between = 2 * (solved + matrices) * static_cast<double>(in.qkv.itemsize());
  const double bytes = bytes_of(in.qkv) + rows * static_cast<double>(shape.value_width() * in.qkv.itemsize());
  // Backward recomputes the intermediates.
  return {.forward = {"gated_delta_rule", flops, bytes + between},
          .backward = {"gated_delta_rule_backward", 3 * flops, 2 * bytes + 3 * between},
          .dtype = dtype_of(in.qkv)};
}

DeltaInput input_of(const std::vector<at::Tensor>& in) { return {in[0], in[1], in[2], in[3]}; }

}  // namespace

at::Tensor gated_delta_rule(const DeltaInput& in, const DeltaShape& shape, const at::Tensor& segment_SB) {
  const auto function = [shape, segment_SB](const std::vector<at::Tensor>& inputs) {
    const Operands operands = operands_of(input_of(inputs), shape);
    at::Tensor memory = empty_memory(operands);
    return as_rows(Chunks(operands, segment_SB).run(memory), inputs[0].scalar_type());
  };
  return rerun_function(function, {in.qkv, in.gates, in.a_log, in.dt_bias}, cost_of(in, shape));
}

at::Tensor gated_delta_rule_after(const DeltaInput& in, const DeltaShape& shape, at::Tensor& memory) {
  const KernelCost cost = cost_of(in, shape).forward;
  const CostScope scope(cost.name, cost.flops, cost.bytes, dtype_of(in.qkv));
  return as_rows(Chunks(operands_of(in, shape), {}).run(memory), in.qkv.scalar_type());
}

at::Tensor gated_delta_rule_reference(const DeltaInput& in, const DeltaShape& shape, const at::Tensor& segment_SB) {
  const Operands o = operands_of(in, shape);
  at::Tensor memory = empty_memory(o);
  std::vector<at::Tensor> out;
  for (int64_t s = 0; s < o.q.size(2); ++s) {
    const auto at = [s](const at::Tensor& x) { return x.select(2, s); };
    if (segment_SB.defined() && s > 0) {
      const at::Tensor same = (segment_SB.select(0, s) == segment_SB.select(0, s - 1)).to(memory.scalar_type());
      memory = memory * same.view({-1, 1, 1, 1});
    }
    memory = memory * at(o.decay).exp().unsqueeze(-1).unsqueeze(-1);
    const at::Tensor held = at(o.k).unsqueeze(-2).matmul(memory).squeeze(-2);
    const at::Tensor written = (at(o.v) - held) * at(o.beta).unsqueeze(-1);
    memory = memory + at(o.k).unsqueeze(-1) * written.unsqueeze(-2);
    out.push_back(at(o.q).unsqueeze(-2).matmul(memory).squeeze(-2));
  }
  return as_rows(at::stack(out, 2), in.qkv.scalar_type());
}

}  // namespace ranklab
