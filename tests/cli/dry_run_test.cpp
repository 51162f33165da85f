// ranklab train --dry-run: its prediction is what the run then does, and it answers quickly for any size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_program.h"
#include "tests/fair_clock.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

std::string log_dir() { return temporary_path("ranklab_dry_run"); }

Outcome train_logged(const std::string& arguments) {
  return run_command(std::string(RANKLAB_PROGRAM " train --log-dir ") + log_dir() + " " + arguments);
}

nlohmann::json json_of(const std::string& arguments) {
  const Outcome run = run_command(std::string(RANKLAB_PROGRAM " ") + arguments);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return nlohmann::json::parse(run.output);
}

nlohmann::json dry_run(const std::string& arguments) {
  const Outcome run = train_logged("--dry-run --json " + arguments);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return nlohmann::json::parse(run.output);
}

// The line of a stream of JSON objects.
nlohmann::json line_of(const std::string& output, int wanted) {
  std::istringstream lines(output);
  std::string line;
  for (int i = 0; i <= wanted; ++i) std::getline(lines, line);
  return nlohmann::json::parse(line);
}

TEST(DryRun, EstimatesTheVirtualStepThatTheRunThenTakes) {
  for (const char* layout : {"--tp 1", "--tp 8", "--tp 2", "--pp 4", "--pipeline-schedule zb-h1"}) {
    const auto estimate = dry_run(layout)["data"]["estimate"];
    const Outcome run = train_logged(std::string("--json --mock-data --train-iters 2 --eval-interval 0 --no-trace ") +
                                     layout + " 2>/dev/null");
    ASSERT_EQ(run.exit_code, 0) << run.output;
    const auto step = line_of(run.output, 1);
    const double tolerance = estimate["tolerance"];
    EXPECT_LE(tolerance, 0.25);
    EXPECT_NEAR(estimate["virtual_step_ms"].get<double>() / step["virtual_step_ms"].get<double>(), 1.0, tolerance)
        << layout;
    EXPECT_NEAR(estimate["mfu"].get<double>() / step["mfu"].get<double>(), 1.0, tolerance) << layout;
  }
}

// The GPUs on which a launcher starts processes may be in another machine, which has the data.
TEST(DryRun, OfGpusSaysThatTheirDataAreNotHere) {
  const auto plan = dry_run("--backend cuda --world-size 8 --tp 2 --data-path /nonexistent/shards");
  ASSERT_FALSE(plan["warnings"].empty()) << plan;
  EXPECT_THAT(plan["warnings"].back().get<std::string>(), HasSubstr("/nonexistent/shards"));
}

TEST(DryRun, AnswersAtOnceForWorldsThisMachineCannotHold) {
  const FairClock clock;
  const auto run = dry_run("--preset llama_8b --world-size 64 --tp 8 --gbs 128 --mbs 1");
  EXPECT_LT(clock.seconds(), 10);
  const auto& memory = run["data"]["memory_bytes"];
  // 8.03e9 fp32 parameters over 8 ranks, 65 norm vectors of 4096 on each.
  const int64_t norms = 65 * 4096;
  const int64_t parameters = 4 * ((8030261248 - norms) / 8 + norms);
  EXPECT_EQ(memory["parameters"], parameters);
  EXPECT_EQ(memory["optimizer"], 2 * parameters + 8) << "and two counters of steps";
  EXPECT_EQ(run["data"]["traffic"][1]["axis"], "dp");
  EXPECT_EQ(run["data"]["traffic"][1]["logical_bytes_per_rank"], parameters);
  ASSERT_EQ(run["warnings"].size(), 1u) << "that it fits is no warning";
  EXPECT_THAT(run["warnings"][0].get<std::string>(), HasSubstr("products run in fp32"));
}

// Two commands report what a step moves, another two what an optimizer holds.
TEST(DryRun, TellsTheTrafficThatTopoTells) {
  for (const char* layout : {"--dp 4 --tp 2", "--pp 2 --tp 2 --dp 2", "--dp 8 --ep 4 --num-experts 8"}) {
    const std::string run = std::string(layout) + " --mbs 2 --gbs 32 --gpus-per-node 4 --ddp-bucket-bytes 100000 ";
    const auto told = dry_run("--preset gpt_tiny " + run)["data"]["traffic"];
    auto topo = json_of("topo --preset gpt_tiny --json " + run)["data"]["traffic"]["axes"];
    for (auto& row : topo)
      for (const char* only_topo : {"groups", "groups_across_nodes"}) row.erase(only_topo);
    EXPECT_EQ(told, topo) << layout;
    EXPECT_FALSE(told.empty());
  }
}

TEST(DryRun, TellsTheOptimizersBytesThatTheZeroMapTells) {
  for (const char* stage : {"0", "1", "2", "3"}) {
    const std::string run = std::string("--dp 8 --zero-stage ") + stage;
    constexpr int64_t kCounters = 8;  // of AdamW's steps
    int64_t most = 0;
    const nlohmann::json map = json_of("zero map --json " + run);
    for (const auto& rank : map["data"]["pipeline_ranks"][0]["ranks"])
      most = std::max(most, rank["optimizer_bytes"].get<int64_t>());
    const int64_t told = dry_run(run)["data"]["memory_bytes"]["optimizer"];
    EXPECT_LE(told, most + kCounters) << stage;
    EXPECT_GE(static_cast<double>(told), 0.98 * static_cast<double>(most)) << stage << ": of the rank with most pieces";
  }
}

// Three commands report what a rank holds, from one estimate.
TEST(DryRun, TellsTheMemoryThatPlanMemoryAndModelInfoTell) {
  const std::string model =
      "--preset llama_8b --num-layers 4 --seq-length 2048 --world-size 16 --gbs 32 --mbs 1 --bf16 ";
  for (const char* layout :
       {"--tp 1", "--tp 2 --zero-stage 1", "--zero-stage 2", "--zero-stage 3 --recompute-granularity full",
        "--pp 4 --tp 2 --zero-stage 3", "--pp 2 --optimizer sgd"}) {
    const auto dry = dry_run(model + layout);
    const auto planned = json_of("plan memory --json " + model + layout)["data"]["ranks"];
    const auto info = json_of("model info --json " + model + layout)["data"]["rank"];
    const auto fullest = std::max_element(planned.begin(), planned.end(), [](const auto& a, const auto& b) {
      return a["at_peak"]["together"] < b["at_peak"]["together"];
    });
    EXPECT_EQ(dry["data"]["memory_bytes"], (*fullest)["at_peak"]) << layout;
    EXPECT_EQ(info["memory_bytes"], (*fullest)["at_peak"]) << layout;
  }
}

// ZeRO stage 3 holds a share of a 70B model, not the model: no warning if it fits, and advice if it does not.
TEST(DryRun, KnowsTheSharesOfZero) {
  const std::string model = "--preset llama_70b --world-size 64 --bf16 --gbs 64 --mbs 1 --recompute-granularity full ";
  const auto sharded = dry_run(model + "--zero-stage 3");
  EXPECT_LT(sharded["data"]["memory_bytes"]["together"], int64_t{45} << 30);
  EXPECT_TRUE(sharded["warnings"].empty()) << sharded["warnings"];
  const auto whole = dry_run(model);
  EXPECT_GT(whole["data"]["memory_bytes"]["together"], int64_t{1000} << 30);
  EXPECT_THAT(whole["warnings"][0], HasSubstr("raise --zero-stage, raise --tp or --pp"));
}

// The layout of arXiv 2412.19437, section 3.2: pipelines of 16, experts over 64 ranks, 2048 GPUs, a batch of 15360.
TEST(DryRun, PlansTheLayoutThatDeepSeekV3WasTrainedIn) {
  const FairClock clock;
  const auto data =
      dry_run("--preset deepseek_v3 --world-size 2048 --pp 16 --ep 64 --tp 1 --gbs 15360 --mbs 1")["data"];
  EXPECT_LT(clock.seconds(), 10);
  EXPECT_EQ(data["parameters"], 671026404352);
  EXPECT_EQ(data["active_parameters"], 37552282624);
  EXPECT_EQ(data["mtp_parameters"], 11610067968);
  EXPECT_EQ(data["dp"], 128);
  EXPECT_EQ(data["microbatches"], 120);
  const auto& ep = data["traffic"][2];
  EXPECT_EQ(ep["axis"], "ep");
  // A rank of four layers: 8 copies of 4096 tokens, of which 63 of 64 leave the rank, four times a layer and
  // microbatch, and the counts of 256 experts from each peer; the norm's 8 bytes.
  const int64_t copies = int64_t{4096} * 8 * 7168 * 4;
  EXPECT_EQ(ep["logical_bytes_per_rank"], 120 * 4 * (4 * copies + 64 * 256 * 8) + 8);
  EXPECT_GT(ep["sent_bytes_per_rank"], 120 * 4 * 4 * copies / 64 * 63);
  EXPECT_LT(ep["sent_bytes_per_rank"], 120 * 4 * 4 * copies / 64 * 63.1);
  EXPECT_GT(data["estimate"]["mfu"], 0.2);
  EXPECT_LT(data["estimate"]["mfu"], 0.8);
  EXPECT_THAT(
      train_logged("--dry-run --preset deepseek_v3 --world-size 2048 --pp 16 --ep 64 --tp 1 --gbs 15360 --mbs 1")
          .output,
      testing::AllOf(HasSubstr("671B parameters, 37.6B active (36.6B without the embedding), MTP 11.6B"),
                     HasSubstr("shared experts 2.55B, routed experts 654B, head 927M, MTP 11.6B"),
                     HasSubstr("KV cache 137 KiB a token in fp32: latent attention")));
}

TEST(DryRun, WarnsWhenARankDoesNotFitTheProfile) {
  const auto run = dry_run("--preset llama_8b --world-size 8 --tp 1 --gbs 8 --bf16");
  ASSERT_EQ(run["warnings"].size(), 1u);
  EXPECT_THAT(run["warnings"][0].get<std::string>(), HasSubstr("raise --tp"));
  EXPECT_THAT(train_logged("--dry-run --preset llama_8b --world-size 8 --tp 1 --gbs 8").output,
              HasSubstr("warning  a rank"));
}

TEST(DryRun, OneOfAThingIsNoPlural) {
  const std::string one = " --world-size 1 --tp 1 --pp 1 --seq-length 1 --gbs 1",
                    model = " --num-layers 1 --num-attention-heads 1";
  for (const auto& [command, says] :
       {std::pair{"train --dry-run" + one, "world    1 rank on"},
        {"train --dry-run" + one, "; 1 token a step"},
        {"plan search --world-size 1 --gbs 1", "; 1 sequence a step on 1 x"},
        {"model info gpt_tiny" + model, ", 1 layer, hidden 128, 1 head,"},
        {"topo --preset gpt_tiny" + one, "1 microbatch of 1 x 1 token on each of 1 replica,"}})
    EXPECT_THAT(ranklab(command).output, HasSubstr(says)) << command;
}

TEST(DryRun, SettingsWithoutEffectAreToldOnce) {
  const std::string text = train_logged("--dry-run --sgd-momentum 0.9 2>&1").output;
  const std::string idle = "--sgd-momentum 0.9 has no effect";
  EXPECT_THAT(text, HasSubstr(idle + ": it applies to --optimizer sgd"));
  EXPECT_EQ(text.find(idle), text.rfind(idle));
  EXPECT_THAT(train_logged("--dry-run --optimizer sgd --sgd-momentum 0.9 2>&1").output,
              testing::Not(HasSubstr("no effect")));
}

TEST(DryRun, LeavesNothingBehind) {
  std::filesystem::remove_all(log_dir());
  EXPECT_EQ(train_logged("--dry-run").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(log_dir()));
}

TEST(DryRun, SaysWhatIsAnEstimateAndHowItIsMade) {
  const std::string text = train_logged("--dry-run").output;
  EXPECT_THAT(text, HasSubstr("estimate, within 5 % of the measured peak"));
  EXPECT_THAT(text, HasSubstr("how: each kernel max(FLOPs / peak, bytes / bandwidth) + launch"));
  EXPECT_THAT(text, HasSubstr("nothing was run\n"));
  const std::string minutes = "--preset llama_70b --hardware laptop --dp 1 --tp 1 --pp 1 --gbs 4 --mbs 1";
  EXPECT_THAT(train_logged("--dry-run " + minutes).output, testing::ContainsRegex("[0-9]{2,} s of virtual time"));
  EXPECT_THAT(run_command(RANKLAB_PROGRAM " plan memory " + minutes).output,
              testing::ContainsRegex("none .* [0-9]{2,} s  this run\n"))
      << "no 1e+05 ms";
  EXPECT_THAT(train_logged("--dry-run --world-size 1 --tp 1").output, HasSubstr("one rank sends nothing"));
}

}  // namespace
}  // namespace ranklab
