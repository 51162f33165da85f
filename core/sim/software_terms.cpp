#include "core/sim/software_terms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/sim/hardware_profile.h"

namespace ranklab {
namespace {

using Factors = std::array<double, KernelShape::kKinds>;  // by KernelShape::Kind

enum class Machine : uint8_t { kAmpere, kHopper, kBlackwell, kBlackwellRack };

// Racks share NVLink over more than a node's eight GPUs; their runs launch graphs of kernels, those of other Blackwell
// machines kernel after kernel.
Machine machine_of(const HardwareProfile& profile) {
  constexpr int kNode = 8;
  if (profile.peak_flops_fp8 <= 0) return Machine::kAmpere;
  if (!profile.kernels->gemm_4bit) return Machine::kHopper;
  return profile.gpus_per_node > kNode ? Machine::kBlackwellRack : Machine::kBlackwell;
}

// Beside the software's factors, which are Ampere's.
struct OnMachine {
  std::string_view software;
  Factors hopper, blackwell;
  double collectives_hopper = 1;
};
constexpr std::array kOnMachines = {
    OnMachine{"eager", {1.15, 1.15, 1.15, 0.7, 1, 1}, {1.15, 1.15, 1.15, 0.7, 1, 1}, 0.75},
    OnMachine{"llm_foundry", {1, 1, 0.28, 1.93, 0.45, 1}, {1, 1, 1, 1.93, 1, 1}},
    OnMachine{"compiled", {1, 1, 1, 2.45, 1, 1}, {1, 1, 1, 2.45, 1, 1}},
    OnMachine{"compiled_async_tp", {1, 1, 1, 2.45, 1, 1}, {1, 1, 1, 2.45, 1, 1}},
    OnMachine{"transformer_engine", {2.2, 1, 1.1, 1.3, 1, 1}, {1, 1, 1, 1, 1, 1}, 0.4},
    OnMachine{"megatron_core_26_06", {3, 1.1, 1.3, 1.5, 1, 1}, {1, 1, 1, 1, 1, 1}, 0.5}};

// In microseconds that the host takes for an operator of this project's model, of which the software has some more.
struct Launches {
  std::string_view software;
  std::array<double, 4> us;  // by Machine
};
constexpr std::array kLaunches = {Launches{"transformer_engine", {45, 45, 40, 20}},
                                  Launches{"megatron_core_26_06", {45, 45, 40, 15}}};

struct InRun {
  std::string_view software;
  Factors selective;
  double beside;
};
constexpr std::array kInRuns = {InRun{"eager", {1.3, 1.12, 1.12, 1, 1.12, 1}, 0},
                                InRun{"compiled", {1.3, 1.12, 1.12, 1, 1.12, 1}, 0.15},
                                InRun{"compiled_async_tp", {1.3, 1.12, 1.12, 1, 1.12, 1}, 0.15}};
// Products of torch's compiler with a scale for each row: another library's kernels.
constexpr double kRowScaled = 1.3;
bool compiled(std::string_view software) { return software == "compiled" || software == "compiled_async_tp"; }

// Whose ranks send parts of what all of them hold.
constexpr std::array<std::string_view, 4> kMessagesInParts = {"megatron", "megatron_deepspeed",
                                                              "megatron_deepspeed_bf16", "megascale"};

template <typename Rows>
auto row_of(const Rows& rows, std::string_view software) {
  const auto found = std::ranges::find_if(rows, [&](const auto& row) { return row.software == software; });
  return found == rows.end() ? nullptr : &*found;
}

void times(Software& software, const Factors& factors) {
  for (size_t kind = 0; kind < factors.size(); ++kind) software.kernels.at(kind) *= factors.at(kind);
}

SoftwareTerms terms_of(const HardwareProfile& profile, const SoftwareRun& run) {
  constexpr double kEachDoubling = 0.03, kAsyncTensor = 0.55, kGatheredIn8Bits = 0.75, kMegatronCoreTensor = 0.45;
  // By two runs of ZeRO-3 alone, on 384 and 1,120 A100 (arXiv 2104.04473, table 2).
  constexpr double kShardsAcross = 10;
  const std::string_view name = profile.software.name;
  SoftwareTerms terms{.slowest = kEachDoubling};
  if (const InRun* row = row_of(kInRuns, name)) terms.beside = row->beside;
  if (const Launches* row = row_of(kLaunches, name))
    terms.launch_us = row->us.at(static_cast<size_t>(machine_of(profile)));
  if (compiled(name) && run.scales_tensors) terms.tensor_collectives *= kGatheredIn8Bits;
  if (name == "compiled_async_tp") terms.tensor_collectives *= kAsyncTensor;
  if (name == "transformer_engine" || name == "megatron_core_26_06") terms.tensor_collectives = kMegatronCoreTensor;
  if (name == "megatron_deepspeed") terms.sharded_across_nodes = kShardsAcross;
  if (std::ranges::find(kMessagesInParts, name) != kMessagesInParts.end()) terms.message_parts = run.same_activations;
  return terms;
}

}  // namespace

void adapt_software(HardwareProfile& profile, const SoftwareRun& run) {
  if (profile.kernels == nullptr) return;
  Software& software = profile.software;
  const std::string_view name = software.name;
  const Machine machine = machine_of(profile);
  if (const OnMachine* row = row_of(kOnMachines, name); row != nullptr && machine != Machine::kAmpere) {
    times(software, machine == Machine::kHopper ? row->hopper : row->blackwell);
    if (machine == Machine::kHopper) software.collectives *= row->collectives_hopper;
  }
  if (const InRun* row = row_of(kInRuns, name); row != nullptr && run.recomputes_attention)
    times(software, row->selective);
  if (compiled(name) && run.scales_rows)
    software.kernels.at(static_cast<size_t>(KernelShape::Kind::kLowProduct)) *= kRowScaled;
  software.terms = terms_of(profile, run);
}

double slowest_share(const HardwareProfile& profile, int gpus) {
  constexpr double kFewGpus = 512;
  if (profile.kernels == nullptr || gpus <= kFewGpus) return 0;
  return profile.software.terms.slowest * std::log2(gpus / kFewGpus);
}

}  // namespace ranklab
