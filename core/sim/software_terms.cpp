#include "core/sim/software_terms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/sim/hardware_profile.h"

namespace ranklab {
namespace {

using Factors = std::array<double, KernelShape::kKinds>;  // by KernelShape::Kind

// Beside the software's factors, which are Ampere's.
struct OnMachine {
  std::string_view software;
  Factors hopper, blackwell;
  double collectives_hopper = 1;
};
constexpr std::array kOnMachines = {
    OnMachine{"eager", {1, 1.15, 1.15, 0.9, 1, 1}, {1, 1.15, 1.15, 0.9, 1, 1}},
    OnMachine{"llm_foundry", {1, 1, 1, 1.93, 1, 1}, {1, 1, 1, 1.93, 1, 1}},
    OnMachine{"compiled", {1, 1, 1, 2.2, 1, 1}, {1, 1, 1, 2.2, 1, 1}},
    OnMachine{"transformer_engine", {2.2, 1, 1.85, 1.4, 1, 1}, {1, 1, 1, 1, 1, 1}, 0.5},
    OnMachine{"megatron_core_26_06", {5, 1.3, 1.7, 2.2, 1, 1}, {1, 1, 1, 1, 1, 1}, 0.5}};

struct InRun {
  std::string_view software;
  Factors selective;
  double hidden;
};
constexpr std::array kInRuns = {InRun{"eager", {1.3, 1.12, 1.12, 1, 1.12, 1}, 0},
                                InRun{"compiled", {1.3, 1.12, 1.12, 1, 1.12, 1}, 0.15}};

void times(Software& software, const Factors& factors) {
  for (size_t kind = 0; kind < factors.size(); ++kind) software.kernels.at(kind) *= factors.at(kind);
}

}  // namespace

void adapt_software(HardwareProfile& profile, bool recomputes_attention) {
  if (profile.kernels == nullptr) return;
  const std::string_view name = profile.software.name;
  for (const OnMachine& row : kOnMachines) {
    if (row.software != name || profile.peak_flops_fp8 <= 0) continue;
    const bool blackwell = profile.kernels->gemm_4bit.has_value();
    times(profile.software, blackwell ? row.blackwell : row.hopper);
    if (!blackwell) profile.software.collectives *= row.collectives_hopper;
  }
  for (const InRun& row : kInRuns)
    if (row.software == name && recomputes_attention) times(profile.software, row.selective);
}

double hidden_share(const HardwareProfile& profile) {
  const auto* const row = std::ranges::find(kInRuns, std::string_view(profile.software.name), &InRun::software);
  return row == kInRuns.end() || profile.kernels == nullptr ? 0 : row->hidden;
}

double slowest_share(const HardwareProfile& profile, int gpus) {
  constexpr double kFewGpus = 512, kEachDoubling = 0.03;
  if (profile.kernels == nullptr || gpus <= kFewGpus) return 0;
  return kEachDoubling * std::log2(gpus / kFewGpus);
}

}  // namespace ranklab
