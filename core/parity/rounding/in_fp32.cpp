#include "core/parity/rounding/in_fp32.h"

#include <algorithm>

#include "core/precision/precision_policy.h"

namespace ranklab {
namespace {

bool has_few(DType type) { return size_bytes(type) < size_bytes(DType::kFloat32); }

}  // namespace

std::string few_bits_of(const RunPlan& plan) {
  if (plan.precision && plan.precision->quantizes()) return plan.precision->recipe().name;
  if (has_few(plan.config.element_dtype())) return std::string(name(plan.config.element_dtype()));
  if (!plan.precision) return "";
  const auto few = std::ranges::find_if(plan.precision->modules(), has_few, &ModulePrecision::compute);
  return few == plan.precision->modules().end() ? "" : std::string(name(few->compute));
}

TrainConfig in_fp32(TrainConfig config) {
  const TrainConfig plain;
  config.bf16 = plain.bf16;
  config.params_dtype = plain.params_dtype;
  config.precision = plain.precision;
  config.muon_ns_dtype = plain.muon_ns_dtype;
  return config;
}

}  // namespace ranklab
