// What a trace reports as most costly: for runs with a known cause, for healthy ones, and for runs that follow the
// advice.
#include "viz/model/insights/insight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/presets.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

using testing::HasSubstr;
using viz::Insight;

// Two steps of 8 layers, 16 sequences.
TrainConfig base(int world) {
  TrainConfig c = tiny_config(world, 1);
  c.model.num_layers = 8;
  c.model.hidden_size = 64;
  c.model.ffn_hidden_size = 256;
  c.model.seq_length = 64;
  c.global_batch_size = 16;
  c.parallel.pp = 1;
  c.train_iters = 2;
  return c;
}

TrainConfig pipeline(int pp, int64_t microbatches, int64_t sequences) {
  TrainConfig c = base(pp);
  c.parallel.pp = pp;
  c.global_batch_size = sequences;
  c.num_microbatches = microbatches;
  return c;
}

TrainConfig experts(int ep) {
  TrainConfig c = base(ep);
  c.model = model_preset("deepseek_v3_tiny");
  c.model.num_layers = 4;
  c.model.mtp_num_layers = 0;
  c.model.seq_length = 64;
  c.parallel.ep = ep;
  return c;
}

// A sequence so long that attention takes longer than a hop of the ring.
TrainConfig ring(SequenceBalance balance) {
  TrainConfig c = base(4);
  c.model.num_layers = 1;
  c.model.hidden_size = 256;
  c.model.num_attention_heads = 8;
  c.model.seq_length = 4096;
  c.parallel.cp = 4;
  c.context_split.balance = balance;
  c.global_batch_size = 1;
  return c;
}

struct TracedRun {
  std::vector<Insight> insights;
  double step_ms = 0;
  const Insight* find(const std::string& rule) const {
    for (const Insight& one : insights)
      if (one.rule == rule) return &one;
    return nullptr;
  }
};

TracedRun run_of(const TrainConfig& config) {
  RuntimeEngine engine = tiny_engine(config);
  const auto seen = std::make_shared<RecordingHook>();
  engine.add_hook(seen);
  TraceFile file;
  file.clock = TraceClock::kVirtual;
  file.world_size = config.parallel.world;
  file.ranks = engine.fit().traces;
  const viz::TraceStore store(std::move(file), "run");
  TracedRun run{viz::find_insights(store, store.whole()), seen->steps.back().virtual_step_ms};
  for (const Insight& one : run.insights) {
    if (one.event) {
      EXPECT_LT(one.event->event_index, store.trace(one.event->rank_index).events.size());
    }
  }
  return run;
}

std::string text_of(const TracedRun& run) { return viz::insights_text(run.insights); }

struct Cause {
  const char* name;
  const char* rule;
  const char* says;
  TrainConfig config;
};
void PrintTo(const Cause& cause, std::ostream* out) { *out << cause.name; }

std::vector<Cause> causes() {
  std::vector<Cause> rows;
  TrainConfig c = pipeline(4, 8, 16);
  c.model.vocab_size = 8192;
  c.pipeline_layout = "even";
  rows.push_back({"large_vocabulary", "stage balance", "stage 3 (rank 3)", c});
  c = pipeline(4, 16, 16);
  c.pipeline_layout = "5,1,1,1";
  rows.push_back({"first_stage_is_full", "stage balance", "stage 0 (rank 0)", c});
  rows.push_back(
      {"few_microbatches", "pipeline fill", "4 stages fills and drains with 4 microbatches", pipeline(4, 4, 16)});
  rows.push_back(
      {"long_pipeline", "pipeline fill", "8 stages fills and drains with 8 microbatches", pipeline(8, 8, 16)});
  c = base(4);
  c.overlap_grad_reduce = false;
  rows.push_back({"no_overlap", "exposed communication", "all_reduce of dp", c});
  c = base(4);
  c.parallel.tp = 4;
  rows.push_back({"tokens_travel", "exposed communication", "all_to_all of ep", experts(4)});
  c = base(4);
  c.parallel.tp = 4;
  rows.push_back({"narrow_tensor_parallel", "exposed communication", "of tp", c});
  c = base(2);
  c.recompute_granularity = "full";
  rows.push_back({"full_recomputation", "recomputation", "recomputes", c});
  c = base(2);
  c.trace_level = "kernel";
  rows.push_back({"small_kernels", "launch bound", "launch", c});
  // The last shard of ZeRO has most of the small parameters, and with them most kernels of the norm and the update.
  c = base(4);
  c.model = model_preset("gpt_tiny");
  c.model.num_layers = 8;
  c.model.hidden_size = 64;
  c.model.num_attention_heads = 4;
  c.model.seq_length = 64;
  c.zero_stage = 3;
  rows.push_back({"uneven_optimizer_shards", "straggler", "rank 3", c});
  rows.push_back({"contiguous_ring", "attention balance", "rank 3 attends to 1.7 times the mean",
                  ring(SequenceBalance::kContiguous)});
  c = experts(8);
  c.model.moe.topk = 1;
  c.model.moe.num_groups = 1;
  c.model.moe.group_topk = 1;
  c.model.moe.expert_bias = false;
  c.model.init_std = 1;
  rows.push_back({"collapsed_router", "expert balance", "unevenly", c});
  return rows;
}

class KnownCause : public testing::TestWithParam<Cause> {};

TEST_P(KnownCause, IsNamed) {
  const TracedRun run = run_of(GetParam().config);
  const Insight* found = run.find(GetParam().rule);
  ASSERT_NE(found, nullptr) << text_of(run);
  EXPECT_THAT(found->text, HasSubstr(GetParam().says));
  EXPECT_FALSE(found->advice.empty());
  EXPECT_GT(found->share, 0);
  EXPECT_LT(found->share, 1);
}

INSTANTIATE_TEST_SUITE_P(All, KnownCause, testing::ValuesIn(causes()), [](const auto& row) { return row.param.name; });

struct Healthy {
  const char* name;
  TrainConfig config;
};
void PrintTo(const Healthy& run, std::ostream* out) { *out << run.name; }

std::vector<Healthy> healthy_runs() {
  std::vector<Healthy> rows;
  rows.push_back({"one_rank", base(1)});
  rows.push_back({"dp2", base(2)});
  rows.push_back({"dp4", base(4)});
  TrainConfig c = base(4);
  c.zero_stage = 1;
  rows.push_back({"zero1", c});
  c.zero_stage = 2;
  rows.push_back({"zero2", c});
  c = base(2);
  c.recompute_granularity = "selective";
  rows.push_back({"selective", c});
  rows.push_back({"experts_on_one_rank", experts(1)});
  rows.push_back({"zigzag_ring", ring(SequenceBalance::kZigzag)});
  c = base(2);
  c.precision.recipe = "fp8_delayed";
  rows.push_back({"fp8", c});
  c = base(2);
  c.model.num_layers = 2;
  c.model.hidden_size = 512;
  c.model.ffn_hidden_size = 1408;
  c.model.num_attention_heads = 8;
  c.model.seq_length = 256;
  c.global_batch_size = 8;
  c.trace_level = "kernel";
  rows.push_back({"large_kernels", c});
  c.trace_level = "module";
  c.parallel.world = 1;
  rows.push_back({"wide_layers", c});
  return rows;
}

class HealthyRun : public testing::TestWithParam<Healthy> {};

TEST_P(HealthyRun, SaysNothing) { EXPECT_EQ(text_of(run_of(GetParam().config)), ""); }

INSTANTIATE_TEST_SUITE_P(All, HealthyRun, testing::ValuesIn(healthy_runs()),
                         [](const auto& row) { return row.param.name; });

// Each advice is followed, and the run is faster.
TEST(Advice, OfAnUnevenPipelineIsALayoutThatIsFaster) {
  TrainConfig c = pipeline(4, 16, 16);
  c.pipeline_layout = "5,1,1,1";
  const TracedRun before = run_of(c);
  const Insight* found = before.find("stage balance");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->advice, "try --pipeline-layout 2,2,2,2");
  c.pipeline_layout = "2,2,2,2";
  const TracedRun after = run_of(c);
  EXPECT_LT(after.step_ms, 0.7 * before.step_ms);
}

// The number of layers does not describe modules to which a pattern gave their own stage.
TEST(Advice, OfAPatternIsNoOtherOne) {
  TrainConfig c = pipeline(4, 16, 16);
  c.model.mtp_num_layers = 1;
  c.pipeline_layout = "Et*7|t|m|L";
  const TracedRun run = run_of(c);
  const Insight* found = run.find("stage balance");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->advice, "give the slow stage fewer layers: --pipeline-layout");
}

TEST(Advice, OfALargeHeadIsALayoutThatIsFaster) {
  TrainConfig c = pipeline(4, 16, 16);
  c.model.vocab_size = 32768;
  c.model.num_layers = 16;
  const TracedRun before = run_of(c);
  const Insight* found = before.find("stage balance");
  ASSERT_NE(found, nullptr);
  const std::string flag = "try --pipeline-layout ";
  ASSERT_THAT(found->advice, testing::StartsWith(flag));
  c.pipeline_layout = found->advice.substr(flag.size());
  EXPECT_LT(run_of(c).step_ms, 0.93 * before.step_ms) << c.pipeline_layout;
}

TEST(Advice, OfAFillingPipelineLosesLess) {
  const TracedRun before = run_of(pipeline(4, 4, 16)), more = run_of(pipeline(4, 8, 16));
  ASSERT_NE(before.find("pipeline fill"), nullptr);
  const Insight* left = more.find("pipeline fill");
  EXPECT_LT(left == nullptr ? 0 : left->share, 0.75 * before.find("pipeline fill")->share);
  TrainConfig zero_bubble = pipeline(4, 4, 16);
  zero_bubble.pipeline_schedule = "zb-h1";
  EXPECT_LT(run_of(zero_bubble).step_ms, before.step_ms);
}

TEST(Advice, OfAFillingInterleavedPipelineNamesAWholeLayout) {
  TrainConfig c = pipeline(4, 4, 16);
  c.model.num_layers = 8;
  c.pipeline_schedule = "interleaved-1f1b";
  c.virtual_stages = 2;
  const TracedRun before = run_of(c);
  const Insight* found = before.find("pipeline fill");
  ASSERT_NE(found, nullptr) << text_of(before);
  EXPECT_THAT(found->advice, HasSubstr("--pipeline-schedule zb-h1 --vpp 1"));
  c.pipeline_schedule = "zb-h1";
  c.virtual_stages = 1;
  EXPECT_LT(run_of(c).step_ms, before.step_ms);
}

TEST(Advice, OfExposedGradientsIsOverlap) {
  TrainConfig c = base(4);
  c.overlap_grad_reduce = false;
  const TracedRun before = run_of(c);
  EXPECT_THAT(before.find("exposed communication")->advice, HasSubstr("--overlap-grad-reduce"));
  c.overlap_grad_reduce = true;
  EXPECT_LT(run_of(c).step_ms, before.step_ms);
}

TEST(Advice, OfExposedParametersIsOverlap) {
  TrainConfig c = base(4);
  c.zero_stage = 1;
  c.global_batch_size = 4;
  c.model.hidden_size = 256;
  c.model.ffn_hidden_size = 512;
  c.model.seq_length = 16;
  const TracedRun before = run_of(c);
  const Insight* found = before.find("exposed communication");
  ASSERT_NE(found, nullptr) << text_of(before);
  EXPECT_THAT(found->advice, HasSubstr("--overlap-param-gather"));
  c.overlap_param_gather = true;
  EXPECT_LT(run_of(c).step_ms, before.step_ms);
}

TEST(Advice, OfTravellingTokensIsOverlap) {
  TrainConfig c = experts(4);
  c.num_microbatches = 2;
  const TracedRun before = run_of(c);
  EXPECT_THAT(before.find("exposed communication")->advice, HasSubstr("--overlap-moe-expert-parallel-comm"));
  c.overlap_moe = true;
  EXPECT_LT(run_of(c).step_ms, before.step_ms);
}

// This cannot be combined with a backward that is split into B and W.
TEST(Advice, OfTravellingTokensInASplitBackwardIsNoOverlap) {
  TrainConfig c = experts(4);
  c.parallel.world = 8;
  c.parallel.pp = 2;
  c.pipeline_schedule = "zb-h1";
  c.num_microbatches = 4;
  const TracedRun run = run_of(c);
  const Insight* found = run.find("exposed communication");
  ASSERT_NE(found, nullptr) << text_of(run);
  EXPECT_EQ(found->advice, "try --moe-token-dispatcher-type dedup");
}

// Besides the time for which the others wait for it, they wait for transfers that their own attention is too short to
// hide.
TEST(Advice, OfUnevenAttentionIsZigzag) {
  const TracedRun before = run_of(ring(SequenceBalance::kContiguous)), after = run_of(ring(SequenceBalance::kZigzag));
  const Insight* found = before.find("attention balance");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->advice, "try --cp-balance zigzag");
  EXPECT_LT(after.step_ms, (1 - found->share) * before.step_ms);
}

TEST(Advice, OfRecomputationIsSelective) {
  TrainConfig c = base(2);
  c.recompute_granularity = "full";
  const TracedRun before = run_of(c);
  EXPECT_THAT(before.find("recomputation")->advice, HasSubstr("--recompute-granularity selective"));
  c.recompute_granularity = "selective";
  EXPECT_LT(run_of(c).step_ms, before.step_ms);
}

}  // namespace
}  // namespace ranklab
