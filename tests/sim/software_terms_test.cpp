// What software costs besides its factors: on a machine, in a run, and in a world of thousands of GPUs.
#include "core/sim/software_terms.h"

#include <gtest/gtest.h>

#include <tuple>

#include "core/base/error.h"
#include "core/sim/gpu_generation.h"
#include "core/sim/hardware_profile.h"
#include "core/sim/what_if.h"

namespace ranklab {
namespace {

HardwareProfile profile_with(const char* gpu, const char* software, Efficiency efficiency = Efficiency::kMeasured) {
  HardwareProfile profile = load_hardware_profile(gpu, efficiency);
  profile.software = software_named(software);
  return profile;
}

double factor(const HardwareProfile& profile, KernelShape::Kind kind) {
  return profile.software.kernels.at(static_cast<size_t>(kind));
}

TEST(SoftwareTerms, AttentionWrittenForAmpereTakesLongerOnHopperAlone) {
  constexpr auto kAttention = KernelShape::Kind::kAttention;
  HardwareProfile a100 = profile_with("a100-80", "compiled"), h100 = profile_with("h100-sxm", "compiled");
  const double before = factor(h100, kAttention);
  adapt_software(a100, {});
  adapt_software(h100, {});
  EXPECT_EQ(factor(a100, kAttention), before);
  EXPECT_GT(factor(h100, kAttention), 1.5 * before);
  EXPECT_EQ(factor(h100, KernelShape::Kind::kProduct), factor(a100, KernelShape::Kind::kProduct));
}

TEST(SoftwareTerms, HalfOfTheProductsAreRecomputedWhereTorchtitanRecomputesSelectively) {
  HardwareProfile plain = profile_with("h100-96", "compiled"), again = plain,
                  megatron = profile_with("h100-96", "megatron");
  const Software before = megatron.software;
  adapt_software(plain, {});
  adapt_software(again, {.recomputes_attention = true});
  adapt_software(megatron, {.recomputes_attention = true});
  constexpr auto kProduct = KernelShape::Kind::kProduct;
  // Recomputed products are between a third and a half of the forward's, which are a third of all.
  EXPECT_GT(factor(again, kProduct) / factor(plain, kProduct), 1 + 1.0 / 9);
  EXPECT_LT(factor(again, kProduct) / factor(plain, kProduct), 1 + 1.0 / 6);
  EXPECT_EQ(megatron.software.kernels, before.kernels) << "it saves every product";
}

TEST(SoftwareTerms, ThousandsOfGpusWaitForTheSlowest) {
  HardwareProfile h100 = profile_with("h100-sxm", "megatron"),
                  datasheet = profile_with("h100-sxm", "megatron", Efficiency::kDatasheet);
  adapt_software(h100, {});
  adapt_software(datasheet, {});
  EXPECT_EQ(slowest_share(h100, 8), 0);
  EXPECT_EQ(slowest_share(h100, 512), 0);
  const double once = slowest_share(h100, 1024);
  EXPECT_GT(once, 0);
  EXPECT_NEAR(slowest_share(h100, 16384), 5 * once, 1e-12) << "as much for each doubling";
  EXPECT_EQ(slowest_share(datasheet, 16384), 0);
}

TEST(SoftwareTerms, NothingIsAddedToThisProjectsKernelsOrToTheDatasheet) {
  HardwareProfile own = profile_with("h100-sxm", "ranklab"),
                  datasheet = profile_with("h100-sxm", "compiled", Efficiency::kDatasheet);
  const Software before = datasheet.software;
  adapt_software(own, {.recomputes_attention = true});
  adapt_software(datasheet, {.recomputes_attention = true});
  EXPECT_EQ(own.software.kernels, software_named("ranklab").kernels);
  EXPECT_EQ(datasheet.software.kernels, before.kernels);
  EXPECT_EQ(own.software.terms.beside, 0);
  EXPECT_EQ(own.software.terms.launch_us, 0);
  EXPECT_EQ(datasheet.software.terms.beside, 0);
  HardwareProfile compiled = profile_with("h100-sxm", "compiled");
  adapt_software(compiled, {});
  EXPECT_GT(compiled.software.terms.beside, 0);
}

TEST(SoftwareTerms, OnlyRanksThatHoldTheSameSendItInParts) {
  HardwareProfile megatron = profile_with("a100-80", "megatron"), split = megatron,
                  eager = profile_with("a100-80", "eager");
  adapt_software(megatron, {.same_activations = 8});
  adapt_software(split, {.same_activations = 1});  // sequence parallelism
  adapt_software(eager, {.same_activations = 8});
  EXPECT_EQ(megatron.software.terms.message_parts, 8);
  EXPECT_EQ(split.software.terms.message_parts, 1);
  EXPECT_EQ(eager.software.terms.message_parts, 1);
}

TEST(SoftwareTerms, ExchangesThatThePlanHidesAreNotHiddenAgain) {
  for (const auto& [software, hidden_by_plan] :
       {std::pair{"transformer_engine", 1.0}, {"compiled_async_tp", 1.0}, {"compiled", 1.32}, {"eager", 1.0}}) {
    HardwareProfile exposed = profile_with("h100-sxm", software), hidden = exposed;
    adapt_software(exposed, {});
    adapt_software(hidden, {.overlaps_tensors = true});
    EXPECT_DOUBLE_EQ(hidden.software.terms.tensor_collectives, hidden_by_plan) << software;
    EXPECT_LE(exposed.software.terms.tensor_collectives, hidden_by_plan) << software;
  }
}

TEST(SoftwareTerms, ProductsScaledByRowsAreThoseOfTorchsCompiler) {
  constexpr auto kLowProduct = KernelShape::Kind::kLowProduct;
  for (const auto& [software, times] :
       {std::pair{"compiled", 1.3}, {"compiled_loss", 1.3}, {"compiled_async_tp", 1.3}, {"eager", 1.0}}) {
    HardwareProfile whole = profile_with("h100-sxm", software), rows = whole;
    adapt_software(whole, {});
    adapt_software(rows, {.scales_rows = true});
    EXPECT_DOUBLE_EQ(factor(rows, kLowProduct), times * factor(whole, kLowProduct)) << software;
  }
}

// Nanotron copies a piece of each parameter for each rank; InternEvo sends no more messages than there are owners.
TEST(SoftwareTerms, UpdatedParametersAreHandedOutOneByOne) {
  const auto taken = [](const char* software, int64_t parameters, int64_t ranks) {
    HardwareProfile profile = profile_with("a100-80", software);
    adapt_software(profile, {});
    return pieces_us(profile, parameters, ranks);
  };
  const double pieces = taken("nanotron", 100, 8), owned = taken("internevo", 100, 8);
  EXPECT_GT(pieces, 0);
  EXPECT_GT(owned, 0);
  EXPECT_DOUBLE_EQ(taken("nanotron", 100, 512), 64 * pieces);
  EXPECT_DOUBLE_EQ(taken("nanotron", 200, 8), 2 * pieces);
  EXPECT_DOUBLE_EQ(taken("internevo", 200, 8), owned) << "8 owners, whatever they own";
  EXPECT_DOUBLE_EQ(taken("internevo", 100, 512), owned * 512 * 100 / (8 * 8)) << "not all of 512 own a parameter";
  EXPECT_EQ(taken("eager", 100, 512), 0);
}

TEST(SoftwareTerms, EverySoftwareHasItsCosts) {
  for (const Software& software : software_rows()) {
    HardwareProfile profile = profile_with("h100-sxm", software.name);
    EXPECT_NO_THROW(adapt_software(profile, {})) << software.name;
  }
}

// Of an L40S too, which is Ada and rounds to 8 bits, and whether its kernels were measured or not.
TEST(GpuGeneration, WorkspacesAreByGeneration) {
  constexpr double kMiB = 1024 * 1024;
  for (const auto& [gpu, cublas, engine] : {std::tuple{"a100-80", 8.125, 4.0},
                                            {"l40s", 8.125, 4.0},
                                            {"h100-sxm", 32.0, 32.0},
                                            {"h800", 32.0, 32.0},
                                            {"b200", 8.125, 32.0},
                                            {"gb300", 8.125, 32.0},
                                            {"rtx-pro-6000", 8.125, 32.0}}) {
    for (const Efficiency efficiency : {Efficiency::kMeasured, Efficiency::kDatasheet}) {
      const HardwareProfile profile = load_hardware_profile(gpu, efficiency);
      EXPECT_EQ(cublas_workspace_bytes(profile), cublas * kMiB) << gpu;
      EXPECT_EQ(engine_workspace_bytes(gpu_generation(profile)), engine * kMiB) << gpu;
    }
  }
}

TEST(WhatIf, AWorkspaceIsWhatIsGivenOrTimesTheDefault) {
  constexpr double kMiB = 1024 * 1024;
  for (const auto& [change, mib] : {std::pair{"", 8.125},
                                    {"cublas-workspace=0", 0},
                                    {"cublas-workspace=0x", 0},
                                    {"cublas-workspace=2x", 16.25},
                                    {"cublas-workspace=4", 4}}) {
    HardwareProfile profile = profile_with("a100-80", "eager");
    apply_what_if(profile, change);
    EXPECT_EQ(cublas_workspace_bytes(profile), mib * kMiB) << change;
  }
}

// Rack-scale machines and eight GPUs under a host of the same generation are not launched alike.
TEST(SoftwareTerms, HostsLaunchKernelsInTheirOwnTime) {
  HardwareProfile b200 = profile_with("b200", "transformer_engine"),
                  gb200 = profile_with("gb200", "transformer_engine");
  adapt_software(b200, {});
  adapt_software(gb200, {});
  EXPECT_GT(b200.software.terms.launch_us, gb200.software.terms.launch_us);
}

}  // namespace
}  // namespace ranklab
