// The virtual timeline of a real run is the one that the simulator computes from the durations of its actions: sends
// and receives cost the link's time, and keep no rank busy.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/pipeline/schedules.h"
#include "core/pipeline/simulate.h"
#include "tests/support/small_config.h"
#include "tests/support/training_record.h"

namespace ranklab {
namespace {

constexpr int kSharedGrads = 1 << 30;  // tag of the exchange after the actions

struct Mean {
  double sum = 0;
  int count = 0;
  void add(const Event& event) {
    sum += static_cast<double>(event.virtual_end_ns - event.virtual_begin_ns);
    ++count;
  }
  double get() const { return count == 0 ? 0 : sum / count; }
};

struct StageMeans {
  Mean f, b, w, bw;
};

// What one step of a run showed.
struct Measured {
  std::vector<StageMeans> stages;
  Mean message;
  double makespan = 0;  // the largest time between a rank's first action and its last

  PipelineTiming timing() const {
    PipelineTiming timing;
    timing.c = message.get();
    for (const StageMeans& s : stages) {
      // A schedule with whole backwards only: what of them is B does not matter.
      const double b = s.b.count > 0 ? s.b.get() : s.bw.get();
      timing.stages.push_back({s.f.get(), b, s.b.count > 0 ? s.w.get() : 0});
    }
    return timing;
  }
};

Measured measure(const TrainingRecord& record, int step) {
  Measured out;
  out.stages.resize(static_cast<size_t>(record.schedule.num_stages()));
  for (const RankTrace& trace : record.traces) {
    int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
    for (const Event& event : trace.events) {
      if (event.step != step) continue;
      const bool is_message = event.verb == Verb::kSend && event.axis == Axis::kPp && event.tag < kSharedGrads;
      if (is_message) out.message.add(event);
      if (event.kind != EventKind::kCompute || event.stage < 0) continue;
      StageMeans& stage = out.stages[static_cast<size_t>(event.stage)];
      const std::string& name = trace.names[event.name];
      (name == "F" ? stage.f : name == "B" ? stage.b : name == "W" ? stage.w : stage.bw).add(event);
      first = std::min(first, event.virtual_begin_ns);
      last = std::max(last, event.virtual_end_ns);
    }
    out.makespan = std::max(out.makespan, static_cast<double>(last - first));
  }
  return out;
}

TEST(PipelineTime, TheBubbleIsTheSimulators) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    for (const int pp : {4, 8}) {
      SCOPED_TRACE(std::string(kind.name) + ", pp " + std::to_string(pp));
      TrainConfig config = small_config();
      config.model.num_layers = pp * std::max(kind.chunks, 1) * (kind.chunks == 0 ? 2 : 1);
      config.virtual_stages = kind.chunks == 0 ? 2 : 1;
      config.num_microbatches = config.global_batch_size = 16;
      config.parallel.world = config.parallel.pp = pp;
      config.pipeline_schedule = kind.name;
      const TrainingRecord record = record_training(config);
      const Measured measured = measure(record, 1);
      const PipelineTimeline simulated = simulate(record.schedule, measured.timing());
      EXPECT_GT(measured.message.get(), 0);
      EXPECT_NEAR(measured.makespan / simulated.makespan, 1, 0.01);
      const double bubble = 1 - simulated.ideal / measured.makespan;
      EXPECT_NEAR(bubble, simulated.bubble_of_total(), 0.01);
    }
  }
}

}  // namespace
}  // namespace ranklab
