#include "core/sim/software_terms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/sim/gpu_generation.h"
#include "core/sim/hardware_profile.h"

namespace ranklab {
namespace {

using Factors = std::array<double, KernelShape::kKinds>;  // indexed by KernelShape::Kind

constexpr Factors kSame = {1, 1, 1, 1, 1, 1};

// What a software costs besides its row in software.cpp: one row each.
struct Costs {
  std::string_view software;
  // Additional factors; the software's own are for Ampere.
  Factors hopper = kSame, blackwell = kSame;
  double collectives_hopper = 1, collectives_blackwell = 1;
  // Host time in microseconds per operator of this project's model (the software itself has somewhat more operators);
  // by GpuGeneration.
  std::array<double, 4> launch_us = {};
  Factors selective = kSame;       // where attention is recomputed
  double beside = 0;               // SoftwareTerms::beside
  double tensor_collectives = 1;   // factor for tensor-parallel groups
  double gathers_8bit = 1;         // the same if activations have one scale per tensor
  double row_scaled = 1;           // factor for 8-bit products with one scale per row
  double shards_across_nodes = 1;  // factor for gathering and scattering shards
  double message_us = 0;           // SoftwareTerms::message_us
  bool sends_parts = false;        // whether ranks send parts of what all tensor-parallel ranks hold
  double piece_us = 0;             // SoftwareTerms::piece_us ...
  bool owners = false;             // ... and owners
};

constexpr Factors kTorchtitanSelective = {1.3, 1.12, 1.12, 1, 1.12, 1};
constexpr Factors kCompiledAttention = {1, 1, 1, 2.6, 1, 1};
constexpr Factors kEagerFromHopper = {1.15, 1.15, 1.15, 0.7, 1, 1};
// PyTorch without a compiler, for each way in which ranks send each other updates.
constexpr Costs eager(std::string_view software, double piece_us = 0, bool owners = false) {
  return {.software = software,
          .hopper = kEagerFromHopper,
          .blackwell = kEagerFromHopper,
          .collectives_hopper = 0.75,
          .selective = kTorchtitanSelective,
          .piece_us = piece_us,
          .owners = owners};
}
// torch.compile, whichever kernels its tensor-parallel collectives use.
constexpr Costs compiled(std::string_view software, double tensor_collectives = 1.32) {
  return {.software = software,
          .hopper = kCompiledAttention,
          .blackwell = kCompiledAttention,
          .collectives_hopper = 1.4,
          .selective = kTorchtitanSelective,
          .beside = 0.15,
          .tensor_collectives = tensor_collectives,
          .gathers_8bit = 0.75,
          .row_scaled = 1.3};
}

// For Megatron's Python code, by GpuGeneration; on racks of Blackwell its runs launch CUDA graphs.
constexpr std::array<double, 4> kMegatronLaunchUs = {45, 45, 40, 20};

constexpr std::array kCosts = {
    Costs{.software = "ranklab"}, Costs{.software = "megatron", .sends_parts = true},
    Costs{.software = "megatron_2023", .launch_us = kMegatronLaunchUs, .message_us = 400, .sends_parts = true},
    // shards: from only two runs of ZeRO-3, on 384 and 1,120 A100 (arXiv 2104.04473, table 2).
    Costs{.software = "megatron_deepspeed",
          .launch_us = kMegatronLaunchUs,
          .shards_across_nodes = 10,
          .sends_parts = true},
    Costs{.software = "megatron_deepspeed_bf16", .launch_us = kMegatronLaunchUs, .sends_parts = true},
    Costs{.software = "megascale", .sends_parts = true}, eager("eager"), eager("nanotron", 30),
    eager("internevo", 13.5, true),
    Costs{.software = "llm_foundry",
          .hopper = {1, 1, 0.28, 1.93, 0.45, 1},
          .blackwell = {1, 1, 1, 1.93, 1, 1},
          .beside = 0.25},
    compiled("compiled"), compiled("compiled_loss"), compiled("compiled_async_tp", 0.73),
    Costs{.software = "transformer_engine",
          .hopper = {2.45, 1.13, 1.13, 0.91, 0.9, 1},
          .blackwell = {0.8, 1.05, 1.07, 1, 0.85, 1},
          .collectives_hopper = 0.35,
          .collectives_blackwell = 1.12,
          .launch_us = kMegatronLaunchUs,
          .tensor_collectives = 0.45},
    Costs{.software = "megatron_core_26_06",
          .hopper = {3, 1.1, 1.3, 1.5, 1, 1},
          .collectives_hopper = 0.5,
          .launch_us = {45, 45, 40, 15},
          .tensor_collectives = 0.45}};

const Costs& costs_of(std::string_view software) {
  const auto* const row = std::ranges::find_if(kCosts, [&](const Costs& one) { return one.software == software; });
  RANKLAB_CHECK(row != kCosts.end(), ErrorKind::kInternal, .where = "software", .what = "a software has no costs",
                .got = std::string(software), .want = "a row of core/sim/software_terms.cpp", .fix = "add it");
  return *row;
}

void times(Software& software, const Factors& factors) {
  for (size_t kind = 0; kind < factors.size(); ++kind) software.kernels.at(kind) *= factors.at(kind);
}

SoftwareTerms terms_of(const Costs& costs, GpuGeneration gpu, const SoftwareRun& run) {
  constexpr double kEachDoubling = 0.03;
  const double tensor_collectives =
      run.overlaps_tensors ? std::max(1.0, costs.tensor_collectives) : costs.tensor_collectives;
  return {.launch_us = costs.launch_us.at(static_cast<size_t>(gpu)),
          .beside = costs.beside,
          .slowest = kEachDoubling,
          .tensor_collectives = tensor_collectives * (run.scales_tensors ? costs.gathers_8bit : 1),
          .sharded_across_nodes = costs.shards_across_nodes,
          .message_us = costs.message_us,
          .message_parts = costs.sends_parts ? run.same_activations : 1,
          .piece_us = costs.piece_us,
          .owners = costs.owners};
}

}  // namespace

void adapt_software(HardwareProfile& profile, const SoftwareRun& run) {
  if (profile.kernels == nullptr) return;
  Software& software = profile.software;
  const Costs& costs = costs_of(software.name);
  const GpuGeneration gpu = gpu_generation(profile);
  if (gpu == GpuGeneration::kHopper) {
    times(software, costs.hopper);
    software.collectives *= costs.collectives_hopper;
  } else if (gpu != GpuGeneration::kAmpere) {
    times(software, costs.blackwell);
    software.collectives *= costs.collectives_blackwell;
  }
  if (run.recomputes_attention) times(software, costs.selective);
  if (run.scales_rows) software.kernels.at(static_cast<size_t>(KernelShape::Kind::kLowProduct)) *= costs.row_scaled;
  software.terms = terms_of(costs, gpu, run);
}

double pieces_us(const HardwareProfile& profile, int64_t parameters, int64_t ranks) {
  const SoftwareTerms& terms = profile.software.terms;
  if (profile.kernels == nullptr) return 0;
  const int64_t messages = terms.owners ? std::min(parameters, ranks) : parameters;
  return terms.piece_us * static_cast<double>(messages) * static_cast<double>(ranks);
}

double slowest_share(const HardwareProfile& profile, int gpus) {
  constexpr double kFewGpus = 512;
  if (profile.kernels == nullptr || gpus <= kFewGpus) return 0;
  return profile.software.terms.slowest * std::log2(gpus / kFewGpus);
}

}  // namespace ranklab
