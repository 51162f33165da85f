#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/model/precision_table.h"

namespace ranklab::viz {
namespace {

std::string row_text(const TensorSeries& tensor, const TensorSample& s, int widest) {
  const std::string sqnr = std::isfinite(s.sqnr_db()) ? strprintf("%.1f dB", s.sqnr_db()) : "-";
  return strprintf("%-*s %-10s %-5s %-9s %9.3f %% %8.3f %% %9s %10.4g %10.4g %10.4g %10.4g\n", widest,
                   tensor.module.c_str(), std::string(kTensorRoles[static_cast<size_t>(tensor.role)]).c_str(),
                   s.format_text().c_str(), s.groups_text().c_str(), 100 * s.underflow_share(),
                   100 * s.saturated_share(), sqnr.c_str(), s.amax, s.scale_min, s.scale_max, s.scale_std);
}

}  // namespace

std::string precision_text(const PrecisionTable& table, int step) {
  if (table.empty())
    return "no quantized tensors: ./ranklab train --dp 8 --precision-recipe mxfp8 records them in every 10th "
           "step\n";
  const int shown = table.step_at(step);
  std::string out = strprintf("step %d: what quantization did to each tensor (sampled steps: %s)\n", shown,
                              join(std::span<const int>(table.steps), " ").c_str());
  size_t widest = 6;
  for (const std::string& module : table.modules) widest = std::max(widest, module.size());
  const int width = static_cast<int>(widest);
  out += strprintf("%-*s %-10s %-5s %-9s %11s %10s %9s %10s %10s %10s %10s\n", width, "module", "tensor", "",
                   "scale of", "underflow", "saturated", "SQNR", "amax", "scale min", "max", "std");
  for (const TensorSeries& tensor : table.tensors) {
    if (const TensorSample* sample = tensor.at(shown); sample != nullptr && sample->step == shown)
      out += row_text(tensor, *sample, width);
  }
  return out;
}

}  // namespace ranklab::viz
