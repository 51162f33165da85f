// The types of whole runs: bugs of the museum are named, module and axis, without numbers; right runs, with every two
// features together and in every layout, have no finding and no gradient without a type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "backends/meta/meta_world.h"
#include "core/base/error.h"
#include "core/config/exhibit_config.h"
#include "core/parity/every_layout.h"
#include "core/parity/exhibit_parity.h"
#include "core/parity/smaller_layouts.h"
#include "core/plan/type_check.h"
#include "core/precision/precision_policy.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/support/composition_space.h"

namespace ranklab {
namespace {

std::shared_ptr<const TypeReport> types_of(const TrainConfig& config) {
  return types_of_step(resolve(config), make_meta_world);
}

std::string first_of(const TypeReport& report) {
  const std::vector<TypeFinding> findings = report.findings();
  if (findings.empty()) return "";
  return findings[0].module + ", " + name(findings[0].phase) + ", over " + std::string(name(findings[0].axis)) + ": " +
         findings[0].got + " (" + findings[0].what + ", " + findings[0].type + ")";
}

void expect_right(const TrainConfig& config) {
  const auto report = types_of(config);
  EXPECT_EQ(first_of(*report), "");
  EXPECT_EQ(report->untyped(), 0);
  EXPECT_GT(report->gradients(), 0);
}

// What follows from a faulty type: other bugs are right arithmetic on wrong numbers, places or scales.
const std::map<std::string, std::string> kNamed = {
    {"kv-heads-unreduced", "tp"},        {"gather-backward-slices", "ep"},  {"norm-unreduced", "tp"},
    {"output-norm-partial", "tp"},       {"dense-over-edp", "dp"},          {"last-microbatch-local", "dp"},
    {"last-stage-unsynced", "dp"},       {"tied-embedding-unsynced", "pp"}, {"dualpipe-unmerged", "pp"},
    {"experts-missing-from-norm", "tp"}, {"norm-per-ep-group", "ep"},       {"bias-local-load", "dp"}};

TEST(TypesOfTheMuseum, NameTwelveWithoutNumbersAndNoneFalsely) {
  for (const Exhibit* exhibit : exhibits()) {
    SCOPED_TRACE(exhibit->name);
    TrainConfig config = config_of_flags(exhibit_flags(*exhibit, testing::TempDir()));
    expect_right(config);
    config.inject = exhibit->name;
    const auto report = types_of(config);
    const std::vector<TypeFinding> findings = report->findings();
    const auto named = kNamed.find(exhibit->name);
    // Adding weights to gradients, which are partial, is a type error; the bug belongs to no axis, though.
    if (exhibit->name == std::string("grad-buffer-stale")) {
      EXPECT_NE(first_of(*report), "");
      continue;
    }
    EXPECT_EQ(findings.empty(), named == kNamed.end()) << first_of(*report);
    if (findings.empty() || named == kNamed.end()) continue;
    EXPECT_EQ(name(findings[0].axis), named->second) << first_of(*report);
    EXPECT_EQ(named->second, exhibit->guilty_axis);
    EXPECT_TRUE(matches(exhibit->guilty_module, findings[0].module)) << first_of(*report);
  }
}

TEST(TypesOfRuns, EveryTwoFeaturesTogetherAreRight) {
  const FeatureSpace space = composition_space();
  const PairCover cover(space);
  for (const Row& row : cover.rows()) {
    SCOPED_TRACE(space.name_of(row));
    expect_right(space.config_of(row));
    if (HasFailure()) return;
  }
}

// Clipping gives weights a type, and their mean over replicas counts nothing twice.
TEST(TypesOfRuns, MeansOfClippedWeightsAreRight) {
  for (const int64_t stage : {0, 3}) {
    TrainConfig config = small_config();
    config.parallel = {.world = 4};
    config.zero_stage = stage;
    config.diloco.replicas = 2;
    config.diloco.sync_steps = 1;
    config.qk_clip = true;
    config.qk_clip_threshold = 1e-3;
    expect_right(config);
  }
}

TEST(TypesOfRuns, EveryLayoutOfExpertsIsRight) {
  TrainConfig config = small_config();
  config.parallel.world = 8;
  config.model.num_layers = 8;
  config.model.moe.num_experts = 8;
  config.clip_grad = 1;
  const std::vector<TrainConfig> layouts = every_layout(config);
  const size_t every = all_cases() ? 1 : 6;
  for (size_t i = 0; i < layouts.size(); i += every) {
    SCOPED_TRACE(layout_flags(layouts[i]));
    expect_right(layouts[i]);
    if (HasFailure()) return;
  }
}

TEST(TypesOfRuns, SharedExpertsBesideEveryDispatchAreRight) {
  for (const char* dispatcher : {"alltoall", "allgather", "dedup"}) {
    SCOPED_TRACE(dispatcher);
    expect_right(config_of_flags({"--world-size", "8", "--tp", "2", "--ep", "4", "--num-layers", "2", "--num-experts",
                                  "8", "--moe-shared-expert-intermediate-size", "32", "--moe-shared-expert-overlap",
                                  "--moe-token-dispatcher-type", dispatcher}));
  }
}

TEST(TypesOfRuns, EveryPrecisionIsRight) {
  for (const char* flag : {"--bf16", "--fp16", "--fp8"}) {
    const std::vector<TrainConfig> layouts =
        every_layout(config_of_flags({"--world-size", "8", "--num-layers", "4", "--num-experts", "8", flag}));
    ASSERT_FALSE(layouts.empty());
    const size_t every = all_cases() ? 1 : 24;
    for (size_t i = 0; i < layouts.size(); i += every) {
      SCOPED_TRACE(flag + (" " + layout_flags(layouts[i])));
      expect_right(layouts[i]);
    }
  }
}

// The kernels join a sink that all ranks have to results that no operator made.
TEST(TypesOfRuns, LearnedSinksAreRight) {
  for (const std::vector<std::string>& kind :
       {std::vector<std::string>{}, {"--window-size", "8"}, {"--kv-lora-rank", "16"}}) {
    std::vector<std::string> flags = {"--world-size", "8", "--num-layers", "2", "--softmax-type", "learnable"};
    flags.insert(flags.end(), kind.begin(), kind.end());
    const std::vector<TrainConfig> layouts = every_layout(config_of_flags(flags));
    ASSERT_FALSE(layouts.empty());
    const size_t every = all_cases() ? 1 : 12;
    for (size_t i = 0; i < layouts.size(); i += every) {
      SCOPED_TRACE(layout_flags(layouts[i]));
      expect_right(layouts[i]);
    }
  }
}

// The kernels for real tensors differ from those for shapes.
TEST(TypesOfRuns, RunsOnNumbersAreRightToo) {
  const FeatureSpace space = composition_space();
  const PairCover cover(space);
  const size_t every = all_cases() ? 1 : 8;
  for (size_t i = 0; i < cover.rows().size(); i += every) {
    SCOPED_TRACE(space.name_of(cover.rows()[i]));
    TrainConfig config = space.config_of(cover.rows()[i]);
    config.check_gradient_types = true;
    config.train_iters = 1;
    trained(config, [](const RunPlan& plan) { return make_test_world(plan.mesh.world_size()); });
  }
}

TEST(TypesOfRuns, AWrongRunEndsAfterItsFirstStep) {
  TrainConfig config = config_of_flags(exhibit_flags(exhibit_named("norm-unreduced"), ""));
  config.inject = "norm-unreduced";
  config.check_gradient_types = true;
  const auto world = [](const RunPlan& plan) { return make_test_world(plan.mesh.world_size()); };
  try {
    trained(config, world);
    FAIL() << "it trained to its end";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCheckFailed);
    EXPECT_THAT(error.what(), testing::HasSubstr("final_norm.weight, reduction, over tp"));
  }
}

}  // namespace
}  // namespace ranklab
