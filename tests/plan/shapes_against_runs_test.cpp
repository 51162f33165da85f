// A step recorded on shapes against the same step on real tensors, row by row: calls and bytes equal, virtual time and
// the fullest moment of every rank within their tolerances; and what one rank of each pipeline rank says against all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "backends/meta/meta_world.h"
#include "core/pipeline/schedules.h"
#include "core/plan/record_step.h"
#include "core/plan/step_time.h"
#include "core/runtime/memory/measure.h"
#include "core/sim/memory_scope.h"
#include "core/trace/trace_report.h"
#include "examples/bring_your_own.h"
#include "tests/plan/against_runs.h"
#include "tests/plan/call_rows.h"
#include "tests/plan/peak_rows.h"
#include "tests/plan/time_rows.h"

namespace ranklab {
namespace {

template <typename Row>
std::string row_name(const testing::TestParamInfo<Row>& row) {
  return row.param.name;
}

class Calls : public testing::TestWithParam<Layout> {};

TEST_P(Calls, AndBytesAreThoseOfTheRun) {
  RuntimeEngine engine = tiny_engine(config_of(GetParam()));
  const TrainResult result = engine.fit();
  expect_calls(record_step(engine.plan(), make_meta_world), result, engine.plan().mesh);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Calls, testing::ValuesIn(kLayouts), row_name<Layout>);

class Times : public testing::TestWithParam<Training> {};

TEST_P(Times, AreThoseOfTheRun) {
  RuntimeEngine engine = tiny_engine(config_of(GetParam()));
  const auto seen = std::make_shared<RecordingHook>();
  engine.add_hook(seen);
  engine.fit();
  expect_time(record_step(engine.plan(), make_meta_world), seen->steps.back(), GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(Runs, Times, testing::ValuesIn(kRuns), row_name<Training>);

class TimesOfFewRanks : public testing::TestWithParam<Training> {};

TEST_P(TimesOfFewRanks, AreThoseOfTheRunWhicheverRankIsTheSlowest) {
  RuntimeEngine engine = tiny_engine(config_of(GetParam()));
  const auto seen = std::make_shared<RecordingHook>();
  engine.add_hook(seen);
  engine.fit();
  constexpr double kRounding = 1e-4;  // of each pass to nanoseconds
  const double planned_ms = static_cast<double>(record_step(engine.plan(), make_meta_world).step_ns) * 1e-6;
  EXPECT_NEAR(planned_ms / seen->steps.back().virtual_step_ms, 1, kRounding);
}

INSTANTIATE_TEST_SUITE_P(Runs, TimesOfFewRanks, testing::ValuesIn(kDiffering), row_name<Training>);

// One rank represents all, and a different one has the longest message.
void expect_muon_time(const TrainConfig& c, const std::string& what) {
  RuntimeEngine engine = tiny_engine(c);
  const auto seen = std::make_shared<RecordingHook>();
  engine.add_hook(seen);
  engine.fit();
  const double planned_ms = static_cast<double>(record_step(engine.plan(), make_meta_world).step_ns) * 1e-6;
  EXPECT_NEAR(planned_ms / seen->steps.back().virtual_step_ms, 1, step_time_tolerance(engine.plan())) << what;
}

TEST(MuonTimes, OfDistributedMuonAreKnownWithinTheirTolerance) {
  for (const int stage : {0, 1}) {
    TrainConfig c = config_of(Training{"", 4, 1, false, 0, larger_muon<MuonDistribution::kDistributed>});
    c.zero_stage = stage;
    expect_muon_time(c, "zero " + std::to_string(stage));
  }
}

// Matrices that take hardly longer than their launches: the rank with the most of them is not the one with the largest,
// nor in the place that takes longest to attend.
TEST(MuonTimes, OfManySmallMatricesAreThoseOfTheRun) {
  for (const int cp : {1, 5}) {
    TrainConfig c = tiny_config(5, 1);
    c.parallel.cp = cp;
    c.model.num_layers = 4;
    c.model.hidden_size = 48;
    c.model.num_attention_heads = 6;
    c.model.ffn_hidden_size = 12;
    c.model.seq_length = 40;
    c.optimizer = OptimizerKind::kMuon;
    c.muon_distribution = MuonDistribution::kDistributed;
    c.zero_stage = 3;
    c.global_batch_size = 5;
    expect_muon_time(c, "cp " + std::to_string(cp));
  }
}

// One rank has more of the dense matrices, the other of the experts', and neither waits for the other in between.
TEST(MuonTimes, OfExpertsAreThoseOfTheRun) {
  TrainConfig c = tiny_config(4, 1);
  c.parallel.pp = 2;
  c.gpus_per_node = 1;
  c.model.num_layers = 2;
  c.model.hidden_size = 40;
  c.model.num_attention_heads = 4;
  c.model.ffn_hidden_size = 20;
  c.model.seq_length = 28;
  c.model.moe = {.num_experts = 6,
                 .topk = 1,
                 .ffn_hidden_size = 8,
                 .shared_ffn_hidden_size = 4,
                 .first_dense_layers = 1,
                 .force_balance = true};
  c.optimizer = OptimizerKind::kMuon;
  c.muon_distribution = MuonDistribution::kLayerSharded;
  c.zero_stage = 0;
  c.efficiency = Efficiency::kMeasured;
  c.global_batch_size = 12;
  expect_muon_time(c, "experts");
}

class Peaks : public testing::TestWithParam<PeakRun> {};

TEST_P(Peaks, AreThoseOfTheRun) { expect_peaks(config_of(GetParam()), GetParam().name); }

INSTANTIATE_TEST_SUITE_P(Runs, Peaks, testing::ValuesIn(kPeakRuns), row_name<PeakRun>);

TEST(Schedules, AreRecordedAsTheyRunWithManyMicrobatches) {
  const auto check = [](const ScheduleKind& kind, int64_t group) {
    TrainConfig c = tiny_config(4, 1);
    c.model.num_layers = 8;
    c.parallel.pp = 4;
    c.pipeline_schedule = kind.name;
    if (kind.chunks == 0) c.virtual_stages = 2;
    c.microbatch_group = group;
    c.micro_batch_size = 1;
    c.global_batch_size = 24;
    expect_recorded(c, std::string(kind.name) + ", groups of " + std::to_string(group));
  };
  for (const ScheduleKind& kind : schedule_kinds()) check(kind, 0);
  check(find_schedule_kind("interleaved-1f1b"), 10);  // and a last one of 4
}

// What data-parallel ranks do with each microbatch, or with the last one alone.
TEST(Repetition, LeavesOutNothing) {
  for (const int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(stage);
    TrainConfig c = tiny_config(4, 2);
    c.parallel.pp = 1;
    c.micro_batch_size = 1;
    c.global_batch_size = 24;
    c.zero_stage = stage;
    expect_recorded(c, "zero " + std::to_string(stage) + " accumulation");
    c.accumulation = Accumulation::kPairwise;
    expect_recorded(c, "zero " + std::to_string(stage) + " pairwise");
    if (!kZeroStages[static_cast<size_t>(stage)].gradients) continue;
    c.accumulation = Accumulation::kSequential;
    c.grad_sync = GradSync::kMicrobatch;
    expect_recorded(c, "zero " + std::to_string(stage) + " each microbatch");
  }
}

void expect_same(const StepRecord& a, const StepRecord& b) {
  EXPECT_EQ(a.step_ns, b.step_ns);
  ASSERT_EQ(a.ranks.size(), b.ranks.size());
  for (size_t i = 0; i < a.ranks.size(); ++i) {
    const RankRecord &x = a.ranks[i], &y = b.ranks[i];
    EXPECT_EQ(x.global_rank, y.global_rank);
    EXPECT_EQ(x.time.end_ns - x.time.begin_ns, y.time.end_ns - y.time.begin_ns);
    EXPECT_EQ(x.time.compute_ns, y.time.compute_ns);
    EXPECT_EQ(x.time.exposed_ns, y.time.exposed_ns);
    EXPECT_EQ(x.time.flops, y.time.flops);
    EXPECT_EQ(x.time.kernel_times.ns, y.time.kernel_times.ns);
    EXPECT_EQ(x.at_peak, y.at_peak);
    EXPECT_EQ(x.highest, y.highest);
    EXPECT_EQ(x.after, y.after);
    EXPECT_EQ(x.kept_bytes, y.kept_bytes);
    EXPECT_EQ(x.traffic.busy_ns, y.traffic.busy_ns);
    EXPECT_EQ(x.traffic.calls.size(), y.traffic.calls.size());
  }
}

// Ranks own different matrices; the plan is of the one that holds most. What was sent is freed once its answer is
// there.
TEST(PeakOfFullest, IsThatOfMatricesUnderWay) {
  TrainConfig c;
  c.parallel = {.world = 4, .tp = 1};
  c.global_batch_size = 4;
  c.micro_batch_size = 1;
  c.model.seq_length = 32;
  c.mock_data = true;
  zero_of<2, both<bf16, muon<MuonDistribution::kDistributed>>>(c);
  const RunPlan plan = resolve(c);
  int64_t fullest = 0;
  for (const MeasuredMemory& rank : measure_memory(default_components(make_thread_world({.size = 4}), plan), plan))
    fullest = std::max(fullest, rank.peak_bytes);
  const int64_t planned = together(record_step(plan, make_meta_world).fullest().at_peak);
  EXPECT_NEAR(static_cast<double>(planned) / static_cast<double>(fullest), 1.0, 0.01);
}

// A first step of one microbatch leaves the second as it is, to the bit.
TEST(ShortFirstStep, LeavesTheRecordAsItIs) {
  std::vector<TrainConfig> runs;
  for (const ScheduleKind& kind : schedule_kinds()) {
    TrainConfig& c = runs.emplace_back(tiny_config(4, 1));
    c.model.num_layers = 8;
    c.parallel.pp = 4;
    c.pipeline_schedule = kind.name;
    if (kind.chunks == 0) c.virtual_stages = 2;
    c.micro_batch_size = 1;
    c.global_batch_size = 24;
  }
  for (size_t row = 0; row < std::size(kRuns); ++row)
    if (row % 4 == 0 || kRuns[row].name == std::string("pp2_zb_v")) runs.push_back(config_of(kRuns[row]));
  for (TrainConfig& c : runs) {
    if (c.parallel.pp == 1) c.micro_batch_size = 1, c.global_batch_size = 4 * c.parallel.world;
    const RunPlan plan = resolve(c);
    SCOPED_TRACE(plan.schedule.name + " world " + std::to_string(c.parallel.world));
    const RuntimeComponents parts = default_components(nullptr, plan);
    expect_same(record_step(plan, make_meta_world, parts),
                record_step(plan, make_meta_world, parts, FirstStep::kWhole));
  }
}

// Attention within the documents of the data: of the second step, of each replica.
TEST(PackedDocuments, AreThoseOfTheData) {
  for (const int dp : {1, 4}) {
    SCOPED_TRACE(dp);
    TrainConfig c = tiny_config(dp, 1);
    c.parallel.pp = 1;
    c.train_iters = 2;
    c.clip_grad = kAlwaysClipped;
    c.micro_batch_size = 1;
    c.global_batch_size = 4 * dp;
    c.documents = {.reset_attention_mask = true, .reset_position_ids = true, .eod_token = '.'};
    const RunPlan plan = resolve(c);
    RuntimeEngine engine(default_components(make_thread_world({.size = dp}), plan), plan);
    const auto seen = std::make_shared<RecordingHook>();
    engine.add_hook(seen);
    engine.fit();
    const StepRecord record = record_step(plan, make_meta_world);
    EXPECT_EQ(record.documents_unknown, "");
    const double ratio = static_cast<double>(record.step_ns) * 1e-6 / seen->steps.back().virtual_step_ms;
    EXPECT_NEAR(ratio, 1, 1e-4);
    EXPECT_GT(record.ranks[0].kept_bytes[0], 0);
    for (const MeasuredMemory& rank : measure_memory(default_components(make_thread_world({.size = dp}), plan), plan))
      EXPECT_NEAR(static_cast<double>(together(record.ranks[0].at_peak)) / static_cast<double>(rank.peak_bytes), 1,
                  kPeakTolerance);
    c.documents = {};
    EXPECT_LT(record_step(resolve(c), make_meta_world).step_ns, 0.8 * static_cast<double>(record.step_ns));
  }
}

// Documents begin anywhere, so that the rank that attends longest is none that is known from lengths.
TEST(PackedDocuments, AreThoseOfTheSlowestContextRank) {
  TrainConfig c = tiny_config(4, 1);
  c.parallel.pp = 1;
  c.parallel.cp = 4;
  c.train_iters = 2;
  c.clip_grad = kAlwaysClipped;
  c.model.seq_length = 128;
  c.documents = {.reset_attention_mask = true, .reset_position_ids = true, .eod_token = '.'};
  const RunPlan plan = resolve(c);
  RuntimeEngine engine(default_components(make_thread_world({.size = 4}), plan), plan);
  const auto seen = std::make_shared<RecordingHook>();
  engine.add_hook(seen);
  engine.fit();
  expect_time(record_step(plan, make_meta_world), seen->steps.back(), "documents cp4");
}

TEST(PackedDocuments, OfDataThatAreNotHereAreNotKnown) {
  TrainConfig c = tiny_config(1, 1);
  c.parallel.pp = 1;
  c.mock_data = false;
  c.data_path = "/nonexistent/shards";
  const StepRecord whole = record_step(resolve(c), make_meta_world);
  c.documents = {.reset_attention_mask = true, .eod_token = '.'};
  const StepRecord record = record_step(resolve(c), make_meta_world);
  EXPECT_THAT(record.documents_unknown, testing::HasSubstr("/nonexistent/shards"));
  EXPECT_EQ(record.step_ns, whole.step_ns);
}

// The slowest rank of a stage need not be its fullest.
TEST(Record, HasTheBytesOfTheFullestAndTheTimeOfTheSlowest) {
  StepRecord slowest, fuller;
  slowest.ranks = {{.global_rank = 0, .pp_rank = 0, .at_peak = {5, 2}, .after = {1}, .time = {.end_ns = 9}},
                   {.global_rank = 2, .pp_rank = 1, .at_peak = {1, 1}, .after = {2}, .time = {.end_ns = 9}}};
  fuller.ranks = {{.global_rank = 1, .pp_rank = 0, .at_peak = {6}, .after = {3}, .time = {.end_ns = 8}},
                  {.global_rank = 3, .pp_rank = 1, .at_peak = {1, 2}, .after = {4}, .time = {.end_ns = 8}}};
  slowest.keep_fuller(fuller);
  EXPECT_EQ(slowest.ranks[0].at_peak, (CategoryBytes{5, 2}));
  EXPECT_EQ(slowest.ranks[0].after, CategoryBytes{1});
  EXPECT_EQ(slowest.ranks[1].at_peak, (CategoryBytes{1, 2}));
  EXPECT_EQ(slowest.ranks[1].after, CategoryBytes{4});
  EXPECT_EQ(slowest.ranks[1].global_rank, 2);
  EXPECT_EQ(slowest.ranks[1].time.end_ns, 9);
}

// The model, data and optimizer of examples/bring_your_own.h say nothing for it.
TEST(OwnModel, IsRecordedAsItRuns) {
  TrainConfig c = tiny_config(4, 1);
  c.parallel.pp = 1;
  c.train_iters = 2;
  c.clip_grad = kAlwaysClipped;
  c.trace_step_start = 1;
  c.trace_step_end = 2;
  const RunPlan plan = resolve(c);
  RuntimeComponents parts = examples::own_components(default_components(make_thread_world({.size = 4}), plan));
  const StepRecord record = record_step(plan, make_meta_world, parts);
  RuntimeEngine engine(parts, plan);
  const auto seen = std::make_shared<RecordingHook>();
  engine.add_hook(seen);
  const TrainResult result = engine.fit();
  expect_calls(record, result, plan.mesh);
  expect_time(record, seen->steps.back(), "own model");
  const std::vector<MeasuredMemory> measured = measure_memory(parts, plan);
  for (const MeasuredMemory& rank : measured)
    EXPECT_NEAR(static_cast<double>(together(record.ranks[0].at_peak)) / static_cast<double>(rank.peak_bytes), 1.0,
                kPeakTolerance);
}

}  // namespace
}  // namespace ranklab
