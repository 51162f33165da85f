// A step recorded on shapes against the same step on real tensors, row by row: calls and bytes equal, virtual time and
// the fullest moment of every rank within their tolerances; and what one rank of each pipeline rank says against all.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/meta/meta_world.h"
#include "core/plan/step_record.h"
#include "core/runtime/memory_measure.h"
#include "core/sim/memory_scope.h"
#include "core/trace/trace_report.h"
#include "tests/plan/plan_rows.h"

namespace ranklab {
namespace {

bool shows() { return std::getenv("RANKLAB_SHOW_ESTIMATES") != nullptr; }

template <typename Row>
std::string row_name(const testing::TestParamInfo<Row>& row) {
  return row.param.name;
}

class Calls : public testing::TestWithParam<Layout> {};

TEST_P(Calls, AndBytesAreThoseOfTheRun) {
  RuntimeEngine engine = tiny_engine(config_of(GetParam()));
  const TrainResult result = engine.fit();
  const DeviceMesh& mesh = engine.plan().mesh;
  const StepRecord record = record_step(engine.plan(), make_meta_world);
  EXPECT_EQ(record.ranks.size(), static_cast<size_t>(mesh.size(Axis::kPp)));
  for (const RankSummary& rank :
       summarize(TraceFile{.ranks = result.traces, .clock = TraceClock::kVirtual, .world_size = GetParam().world})) {
    const RankTraffic& planned = record.of_pipeline_rank(mesh.coordinate(Axis::kPp, rank.global_rank)).traffic.calls;
    size_t kinds = 0;
    for (const auto& [key, seen] : rank.traffic) {
      if (mesh.size(key.first) == 1 || key.second == Verb::kRecv) continue;  // a message counts at its sender
      ++kinds;
      const std::string what = std::string(name(key.first)) + " " + std::string(name(key.second)) + " of rank " +
                               std::to_string(rank.global_rank);
      const auto found = planned.find(key);
      ASSERT_NE(found, planned.end()) << what;
      EXPECT_EQ(found->second.calls, seen.calls) << what;
      EXPECT_EQ(found->second.logical_bytes, seen.logical_bytes) << what;
      EXPECT_EQ(found->second.ring_bytes, seen.algorithm_bytes) << what;
    }
    EXPECT_EQ(kinds, planned.size()) << "rank " << rank.global_rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Calls, testing::ValuesIn(kLayouts), row_name<Layout>);

class LastStep : public Hook {
 public:
  void on_step_end(const StepMetrics& m) override { metrics = m; }
  StepMetrics metrics;
};

class Times : public testing::TestWithParam<Training> {};

TEST_P(Times, AreThoseOfTheRun) {
  constexpr double kTolerance = 0.01;
  RuntimeEngine engine = tiny_engine(config_of(GetParam()));
  const auto last = std::make_shared<LastStep>();
  engine.add_hook(last);
  engine.fit();
  const StepRecord record = record_step(engine.plan(), make_meta_world);
  const double planned_ms = static_cast<double>(record.step_ns) * 1e-6;
  EXPECT_NEAR(planned_ms / last->metrics.virtual_step_ms, 1.0, kTolerance);
  if (shows())
    std::printf("%-34s step: shapes %10.6f ms, run %10.6f ms, %+.3f %%\n", GetParam().name, planned_ms,
                last->metrics.virtual_step_ms, 100 * (planned_ms / last->metrics.virtual_step_ms - 1));
}

INSTANTIATE_TEST_SUITE_P(Runs, Times, testing::ValuesIn(kRuns), row_name<Training>);

class Peaks : public testing::TestWithParam<PeakRun> {};

TEST_P(Peaks, AreThoseOfTheRun) {
  const RunPlan plan = resolve(config_of(GetParam()));
  const std::vector<MeasuredMemory> ranks =
      measure_memory(default_components(make_thread_world({.size = plan.mesh.world_size()}), plan), plan);
  const StepRecord record = record_step(plan, make_meta_world);
  for (const MeasuredMemory& rank : ranks) {
    const RankRecord& planned = record.of_pipeline_rank(plan.mesh.coordinate(Axis::kPp, rank.global_rank));
    const double ratio = static_cast<double>(together(planned.at_peak)) / static_cast<double>(rank.peak_bytes);
    EXPECT_NEAR(ratio, 1.0, 0.05) << "rank " << rank.global_rank;
    if (!shows()) continue;
    std::printf("%-34s r%d peak %+.3f %%:", GetParam().name, rank.global_rank, 100 * (ratio - 1));
    for (size_t i = 0; i < rank.at_peak.size(); ++i)
      std::printf(" %ld/%ld", static_cast<long>(planned.at_peak[i] / 1000), static_cast<long>(rank.at_peak[i] / 1000));
    std::printf("\n");
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, Peaks, testing::ValuesIn(kPeakRuns), row_name<PeakRun>);

}  // namespace
}  // namespace ranklab
