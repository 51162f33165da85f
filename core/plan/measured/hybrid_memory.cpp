#include "core/plan/measured/hybrid_memory.h"

#include "core/config/pipeline_layout.h"
#include "core/config/state_types.h"

namespace ranklab {
namespace {

// Elements of one position that tensor-parallel ranks divide among themselves.
double divided_elements(const ModelConfig& m, int64_t layer, int tp) {
  const auto sum = [](auto... widths) { return (static_cast<double>(widths) + ...); };
  // The fused convolution and scan (mamba_split_conv1d_scan_combined) keep their input, which is all that in_proj
  // computes, and their output before the gate; from these, backward recomputes the convolution and the states. Then
  // the norm keeps its input, and out_proj keeps its own.
  if (m.is_mamba(layer))
    return sum(m.mamba_width(), m.mamba_convolved_width(), m.mamba_heads()) + 3 * sum(m.mamba_width());
  if (m.has_attention(layer)) return sum(2 * m.query_width(), 2 * m.kv_width() * m.kv_copies(tp));
  const double up = m.has_gated_mlp() ? 2 : 1;  // of the activation function, its input and its result
  return (up + 1) * sum(m.ffn_hidden_size);
}

}  // namespace

std::optional<double> hybrid_kept_bytes(const RunPlan& plan, int pp_rank) {
  const ModelConfig& m = plan.config.model;
  const bool counted = !m.moe.enabled() && !m.mla.enabled() && !m.linear.enabled() && m.mtp_num_layers == 0;
  if (!m.is_hybrid() || !counted || plan.precision != nullptr) return std::nullopt;
  const ParallelDims& dims = plan.mesh.dims();
  const double positions = static_cast<double>(plan.micro_batch_size * m.seq_length) / dims.cp;
  const auto hidden = static_cast<double>(m.hidden_size);
  const auto element = static_cast<double>(state_types(plan).param_bytes());
  // The inputs of the norm and of the first product, and the mask of dropout.
  const double whole = (2 * element + (m.dropout > 0 ? 1 : 0)) * hidden / (plan.sequence_parallel ? dims.tp : 1);
  double bytes = 0;
  for (const int64_t layer : layers_of_rank(plan, pp_rank))
    bytes += whole + element * divided_elements(m, layer, dims.tp) / dims.tp;
  return positions * bytes;
}

}  // namespace ranklab
