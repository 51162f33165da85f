// Metrics of a step that only some runs have; empty for the other runs. Used by the log with their names and by
// TensorBoard with their tags. Torch-free. Thread rule: pure.
#pragma once
#include <vector>

#include "core/runtime/hooks.h"

namespace ranklab {

struct ModelMetric {
  const char* name;  // in metrics.jsonl
  const char* tag;   // in TensorBoard: "group/name"
  double value;
};

inline std::vector<ModelMetric> model_metrics(const StepMetrics& m) {
  std::vector<ModelMetric> out;
  if (m.wall_mfu > 0) out.push_back({"wall_mfu", "speed/wall_mfu", m.wall_mfu});
  if (m.peak_memory_bytes > 0)
    out.push_back({"peak_memory_bytes", "memory/peak_bytes", static_cast<double>(m.peak_memory_bytes)});
  if (m.mtp_loss > 0) out.push_back({"mtp_loss", "loss/mtp", m.mtp_loss});
  if (m.moe_max_over_mean > 0) {
    out.push_back({"moe_max_over_mean", "experts/max_over_mean", m.moe_max_over_mean});
    out.push_back({"moe_dropped_fraction", "experts/dropped_fraction", m.moe_dropped_fraction});
    out.push_back({"moe_aux_loss", "experts/aux_loss", m.moe_aux_loss});
    out.push_back({"moe_z_loss", "experts/z_loss", m.moe_z_loss});
    out.push_back({"total_loss", "loss/total", m.total_loss});
  }
  if (m.max_attention_logit) {
    out.push_back({"max_attention_logit", "attention/max_logit", *m.max_attention_logit});
    out.push_back({"clipped_heads", "attention/clipped_heads", static_cast<double>(m.clipped_heads)});
  }
  if (m.zero) {
    out.push_back({"zero_reduced_buckets", "zero/reduced_buckets", static_cast<double>(m.zero->reduced)});
    out.push_back({"zero_reduced_bytes", "zero/reduced_bytes", static_cast<double>(m.zero->reduced_bytes)});
    out.push_back({"zero_updated_buckets", "zero/updated_buckets", static_cast<double>(m.zero->updated)});
    out.push_back({"zero_updated_bytes", "zero/updated_bytes", static_cast<double>(m.zero->updated_bytes)});
    out.push_back({"zero_gathered_units", "zero/gathered_units", static_cast<double>(m.zero->gathered)});
    out.push_back({"zero_gathered_bytes", "zero/gathered_bytes", static_cast<double>(m.zero->gathered_bytes)});
    out.push_back({"zero_freed_units", "zero/freed_units", static_cast<double>(m.zero->freed)});
  }
  if (m.loss_scale > 0) {
    out.push_back({"loss_scale", "grad/loss_scale", m.loss_scale});
    out.push_back({"skipped_steps", "grad/skipped_steps", static_cast<double>(m.skipped_steps)});
  }
  return out;
}

}  // namespace ranklab
