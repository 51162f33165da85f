// Comparisons of a step recorded on shapes with the same step on real tensors.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "backends/meta/meta_world.h"
#include "core/plan/record_step.h"
#include "core/plan/step_time.h"
#include "core/runtime/memory/measure.h"
#include "core/trace/trace_report.h"
#include "tests/plan/run_models.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {

inline bool shows() { return std::getenv("RANKLAB_SHOW_ESTIMATES") != nullptr; }

// Every rank of a run made the calls that the representative of its stage was recorded with.
inline void expect_calls(const StepRecord& record, const TrainResult& run, const DeviceMesh& mesh) {
  ASSERT_EQ(record.ranks.size(), static_cast<size_t>(mesh.size(Axis::kPp)));
  for (const RankSummary& rank :
       summarize(TraceFile{.ranks = run.traces, .clock = TraceClock::kVirtual, .world_size = mesh.world_size()})) {
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

// REQUIRES: gradients were clipped, as in every plan (kAlwaysClipped).
inline void expect_time(const StepRecord& record, const StepMetrics& run, const std::string& what) {
  constexpr double kSameKernels = 5e-4;  // of some kernels the rows are counted by other means than in the run
  const double planned_ms = static_cast<double>(record.step_ns) * 1e-6;
  EXPECT_NEAR(planned_ms / run.virtual_step_ms, 1.0, kSameKernels) << what;
  if (shows())
    std::printf("%-34s step: shapes %10.6f ms, run %10.6f ms, %+.3f %%\n", what.c_str(), planned_ms,
                run.virtual_step_ms, 100 * (planned_ms / run.virtual_step_ms - 1));
}

// The second of two steps, in which a stage repeats most of its microbatches on shapes.
inline void expect_recorded(TrainConfig c, const std::string& what) {
  c.train_iters = 2;
  c.clip_grad = kAlwaysClipped;
  c.trace_step_start = 1;
  c.trace_step_end = 2;
  RuntimeEngine engine = tiny_engine(c);
  const auto seen = std::make_shared<RecordingHook>();
  engine.add_hook(seen);
  const TrainResult result = engine.fit();
  const StepRecord record = record_step(engine.plan(), make_meta_world);
  expect_calls(record, result, engine.plan().mesh);
  expect_time(record, seen->steps.back(), what);
}

// Every rank's fullest moment.
inline void expect_peaks(const TrainConfig& config, const std::string& what) {
  const RunPlan plan = resolve(config);
  const std::vector<MeasuredMemory> ranks =
      measure_memory(default_components(make_thread_world({.size = plan.mesh.world_size()}), plan), plan);
  const StepRecord record = record_step(plan, make_meta_world);
  for (const MeasuredMemory& rank : ranks) {
    const RankRecord& planned = record.of_pipeline_rank(plan.mesh.coordinate(Axis::kPp, rank.global_rank));
    const double ratio = static_cast<double>(together(planned.at_peak)) / static_cast<double>(rank.peak_bytes);
    EXPECT_NEAR(ratio, 1.0, kPeakTolerance) << what << ", rank " << rank.global_rank;
    if (!shows()) continue;
    std::printf("%-34s r%d peak %+.3f %%:", what.c_str(), rank.global_rank, 100 * (ratio - 1));
    for (size_t i = 0; i < rank.at_peak.size(); ++i)
      std::printf(" %ld/%ld", static_cast<long>(planned.at_peak[i] / 1000), static_cast<long>(rank.at_peak[i] / 1000));
    std::printf("\n");
  }
}

}  // namespace ranklab
