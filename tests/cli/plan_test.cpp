// ranklab plan memory, and where a run says what it held.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

nlohmann::json plan(const std::string& arguments) { return data_of("plan memory " + arguments); }

TEST(PlanMemory, MeasuredBesideEstimated) {
  for (const std::string layout : {"", "--bf16 --zero-stage 3 --world-size 8 --tp 1 --pp 1",
                                   "--recompute-granularity full --world-size 4 --tp 2 --pp 2"}) {
    const auto data = plan(layout + " --measure");
    ASSERT_FALSE(data["ranks"].empty());
    for (const auto& rank : data["ranks"]) {
      EXPECT_LE(std::abs(rank["measured"]["difference_percent"].get<double>()), 5) << layout << rank;
      EXPECT_EQ(rank["measured"]["at_peak"]["together"], rank["measured"]["peak_bytes"]) << "the breakdown adds up";
      for (const char* stays : {"parameters", "optimizer"})
        EXPECT_EQ(rank["measured"]["start_highest"][stays], rank["measured"]["at_peak"][stays])
            << layout << ", " << stays;
    }
  }
}

TEST(PlanMemory, TheStartIsARowOfItsOwn) {
  const Outcome run = ranklab("plan memory --world-size 2 --tp 1 --pp 1 --zero-stage 3 --measure");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("before its first step"));
}

TEST(PlanMemory, StatesAndRecomputation) {
  const auto data = plan("--bf16 --zero-stage 2 --world-size 8 --tp 1 --pp 1");
  std::vector<double> each;
  for (const auto& stage : data["zero_stages"]) each.push_back(stage["bytes_per_parameter"]);
  EXPECT_EQ(each, (std::vector<double>{16, 5.5, 3.75, 2}));
  const auto experts = plan("--preset deepseek_v3_tiny --dp 8 --ep 4 --zero-stage 1")["zero_stages"];
  EXPECT_EQ(experts[1]["bytes_per_parameter"], 8 + 8.0 / 8);
  EXPECT_EQ(experts[1]["bytes_per_expert_parameter"], 8 + 8.0 / 2) << "each expert is on 2 of the 8 ranks";
  const auto& rows = data["recompute"];
  ASSERT_EQ(rows.size(), 3U);
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LT(rows[i]["layer_bytes"], rows[i - 1]["layer_bytes"]);
    EXPECT_LT(rows[i]["together"], rows[i - 1]["together"]);
    EXPECT_GT(rows[i]["virtual_step_ms"], rows[i - 1]["virtual_step_ms"]);
  }
  // s b h (34 + 5 a s / h), 34 s b h, 2 s b h for 4 sequences of 128 positions, hidden 128, 8 heads.
  const double sbh = 4.0 * 128 * 128;
  EXPECT_EQ(rows[0]["paper_layer_bytes"], 74 * sbh);
  EXPECT_EQ(rows[1]["paper_layer_bytes"], 34 * sbh);
  EXPECT_EQ(rows[2]["paper_layer_bytes"], 2 * sbh);
  EXPECT_EQ(rows[2]["layer_bytes"], 2 * sbh) << "bf16: the layer's input, as in the paper";
}

// What a layer keeps is found in a run of its own, in which whatever names a layer must mean the same.
TEST(PlanMemory, TakesWhatNamesLayers) {
  const auto keeps = [](const std::string& flags) {
    std::vector<int64_t> bytes;
    const auto rows = plan("--num-layers 4 --tp 1 --pp 1 " + flags).at("recompute");
    for (const auto& row : rows) bytes.push_back(row.at("layer_bytes"));
    return bytes;
  };
  const auto usual = keeps("--world-size 2");
  const auto in_pairs =
      keeps("--world-size 2 --recompute-granularity full --recompute-method uniform --recompute-num-layers 2");
  EXPECT_EQ(in_pairs[2], usual[2] / 2) << "two layers keep one input";
  EXPECT_EQ(keeps("--world-size 2 --grad-accumulation pairwise")[0], usual[0]);
  // Flags of which the last layer of four sees no more than these.
  const std::pair<const char*, const char*> alike[] = {
      {"--world-size 2 --recompute-granularity full --recompute-num-layers 4", "--world-size 2"},
      {"--world-size 2 --backend cuda", "--world-size 2"},
      {"--world-size 2 --mbs 4 --rampup-batch-size '8 8 64'", "--world-size 2 --mbs 4"},
      {"--world-size 2 --cp 2 --cp-comm-type p2p,p2p,all_gather,a2a", "--world-size 2 --cp 2 --cp-comm-type a2a"},
      {"--fp8 --low-precision-exclude layers.3.*", "--fp8"},
      {"--fp8 --low-precision-include layers.3.*", "--fp8"},
      {"--bf16 --module-compute-dtype-override layers.2.mlp.down=fp32", "--bf16"},
      {"--bf16 --mtp-num-layers 1 --module-compute-dtype-rule mtp.*=fp32", "--bf16 --mtp-num-layers 1"},
      {"--num-experts 4 --ep 2 --world-size 4 --order tp-cp-ep-pp-dp", "--num-experts 4 --ep 2 --world-size 4"}};
  for (const auto& [flags, like] : alike) EXPECT_EQ(keeps(flags), keeps(like)) << flags;
  EXPECT_NE(keeps("--world-size 2 --cp 2 --cp-comm-type p2p"), keeps("--world-size 2 --cp 2 --cp-comm-type a2a"));
}

TEST(PlanMemory, SaysItInWords) {
  const Outcome run = ranklab("plan memory --bf16 --zero-stage 1 --recompute-granularity selective");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("bf16, ZeRO stage 1, recomputation selective"));
  EXPECT_THAT(run.output, HasSubstr("pipeline rank 1"));
  EXPECT_THAT(run.output, HasSubstr("estimate, within 5 % of the measured peak; --measure"));
  EXPECT_THAT(run.output, HasSubstr("parameter p 2, gradient g 2, optimizer o 12"));
  EXPECT_THAT(run.output, HasSubstr("arXiv 2205.05198"));
  // States are sharded over all ranks that have them, within a group of them.
  const Outcome context = ranklab("plan memory --dp 2 --cp 4 --zero-stage 1");
  EXPECT_THAT(context.output, HasSubstr("N = dp x cp = 8"));
  EXPECT_THAT(context.output, testing::ContainsRegex("ZeRO 1 +p \\+ g \\+ o/N +9 "));
  const Outcome groups = ranklab("plan memory --dp 8 --zero-stage 1 --num-distributed-optimizer-instances 2");
  EXPECT_THAT(groups.output, HasSubstr("N = 4, of dp 8 in 2 groups"));
}

TEST(Memory, ARunAndItsTraceTellThePeak) {
  const std::string folder = temporary_path("memory_run");
  const Outcome run =
      ranklab("train --mock-data --train-iters 2 --eval-interval 0 --sample-tokens 0 --log-dir " + folder);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("rank 0 at its peak"));
  EXPECT_THAT(run.output, HasSubstr(": activations "));
  const std::string trace = folder + "/trace.json.gz";
  for (const std::string& command : {"trace stats " + trace, "viz " + trace + " --format text --panel memory"}) {
    const Outcome text = ranklab(command);
    ASSERT_EQ(text.exit_code, 0) << text.output;
    EXPECT_THAT(text.output, HasSubstr("each rank at its peak"));
    EXPECT_THAT(text.output, HasSubstr("of limit"));
    EXPECT_THAT(text.output, HasSubstr("r7"));
  }
}

}  // namespace
}  // namespace ranklab
