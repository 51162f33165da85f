// Metrics of a step that only some runs have, under the names that logs use: empty for the other runs. Shared by the
// log and TensorBoard. Torch-free. Thread rule: pure.
#pragma once
#include <utility>
#include <vector>

#include "core/runtime/hooks.h"

namespace ranklab {

inline std::vector<std::pair<const char*, double>> model_metrics(const StepMetrics& m) {
  std::vector<std::pair<const char*, double>> out;
  if (m.wall_mfu > 0) out.emplace_back("wall_mfu", m.wall_mfu);
  if (m.peak_memory_bytes > 0) out.emplace_back("peak_memory_bytes", static_cast<double>(m.peak_memory_bytes));
  if (m.mtp_loss > 0) out.emplace_back("mtp_loss", m.mtp_loss);
  if (m.moe_max_over_mean > 0) {
    out.emplace_back("moe_max_over_mean", m.moe_max_over_mean);
    out.emplace_back("moe_dropped_fraction", m.moe_dropped_fraction);
    out.emplace_back("moe_aux_loss", m.moe_aux_loss);
    out.emplace_back("moe_z_loss", m.moe_z_loss);
    out.emplace_back("total_loss", m.total_loss);
  }
  if (m.zero) {
    out.emplace_back("zero_reduced_buckets", static_cast<double>(m.zero->reduced));
    out.emplace_back("zero_reduced_bytes", static_cast<double>(m.zero->reduced_bytes));
    out.emplace_back("zero_updated_buckets", static_cast<double>(m.zero->updated));
    out.emplace_back("zero_updated_bytes", static_cast<double>(m.zero->updated_bytes));
    out.emplace_back("zero_gathered_units", static_cast<double>(m.zero->gathered));
    out.emplace_back("zero_gathered_bytes", static_cast<double>(m.zero->gathered_bytes));
    out.emplace_back("zero_freed_units", static_cast<double>(m.zero->freed));
  }
  if (m.loss_scale > 0) {
    out.emplace_back("loss_scale", m.loss_scale);
    out.emplace_back("skipped_steps", static_cast<double>(m.skipped_steps));
  }
  return out;
}

}  // namespace ranklab
