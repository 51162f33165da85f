// A planned step that is to be looked at: the calls of repeated passes are in its trace, as often and as exposed as
// they were counted.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "backends/meta/meta_world.h"
#include "core/base/text.h"
#include "core/plan/record_step.h"
#include "core/trace/trace_validate.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

TrainConfig of_eight_microbatches(ParallelDims dims) {
  TrainConfig c = small_config();
  c.parallel = dims;
  c.micro_batch_size = 1;
  c.global_batch_size = 8 * dims.world / dims.tp / dims.cp / dims.pp;
  return c;
}

std::vector<TrainConfig> layouts() {
  std::vector<TrainConfig> all;
  const auto add = [&](ParallelDims dims, const auto& change) {
    change(all.emplace_back(of_eight_microbatches(dims)));
  };
  add({.world = 4, .tp = 2, .pp = 2}, [](TrainConfig&) {});
  add({.world = 4, .dp = 4}, [](TrainConfig& c) { c.zero_stage = 3; });
  add({.world = 8, .tp = 2, .cp = 2, .pp = 2}, [](TrainConfig& c) { c.zero_stage = 2; });
  add({.world = 4, .pp = 2, .ep = 2}, [](TrainConfig& c) { c.model.moe.num_experts = 4; });
  add({.world = 4, .tp = 2, .pp = 2}, [](TrainConfig& c) { c.pipeline_schedule = "zb-v"; });
  return all;
}

struct TracedCalls {
  std::map<std::pair<Axis, Verb>, std::pair<int64_t, int64_t>> of;  // how many, and their logical bytes
  std::array<int64_t, static_cast<size_t>(Axis::kCount)> exposed_ns{};
};

// The plan's own count of what ranks of different stages exchange is checked elsewhere.
TracedCalls calls_of(const RankTrace& trace) {
  TracedCalls calls;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCollective) continue;
    calls.exposed_ns[static_cast<size_t>(event.axis)] += event.virtual_exposed_ns;
    if (event.verb == Verb::kRecv) continue;
    auto& [count, bytes] = calls.of[{event.axis, event.verb}];
    ++count;
    bytes += event.logical_bytes;
  }
  return calls;
}

TEST(RepeatedPasses, AreThoseThatAreCounted) {
  for (const TrainConfig& config : layouts()) {
    const ParallelDims& d = config.parallel;
    SCOPED_TRACE(strprintf("tp %d pp %d cp %d ep %d, ZeRO %lld, %s", d.tp, d.pp, d.cp, d.ep,
                           static_cast<long long>(config.zero_stage), config.pipeline_schedule.c_str()));
    const RunPlan plan = resolve(config);
    const StepRecord record = record_step(plan, make_meta_world, RepeatedCalls::kTraced);
    ASSERT_EQ(record.traces.size(), record.ranks.size());
    for (size_t i = 0; i < record.ranks.size(); ++i) {
      const TracedCalls traced = calls_of(record.traces[i]);
      for (const auto& [key, counted] : record.ranks[i].traffic.calls) {
        if (counted.calls == 0 || plan.mesh.size(key.first) == 1) continue;
        ASSERT_TRUE(traced.of.contains(key)) << name(key.first) << " " << name(key.second);
        EXPECT_EQ(traced.of.at(key), std::pair(counted.calls, counted.logical_bytes))
            << name(key.first) << " " << name(key.second);
      }
      for (size_t axis = 0; axis < traced.exposed_ns.size(); ++axis)
        EXPECT_EQ(traced.exposed_ns[axis], record.ranks[i].time.exposed_ns[axis]) << name(static_cast<Axis>(axis));
    }
    const std::vector<std::string> problems =
        validate_calls({.ranks = record.traces, .clock = TraceClock::kVirtual, .world_size = config.parallel.world});
    EXPECT_TRUE(problems.empty()) << problems.front();
    const StepRecord counted = record_step(plan, make_meta_world);
    EXPECT_LT(counted.traces[0].events.size(), record.traces[0].events.size());
    EXPECT_EQ(counted.step_ns, record.step_ns);
    for (size_t i = 0; i < record.ranks.size(); ++i) {
      EXPECT_EQ(counted.ranks[i].traffic.calls, record.ranks[i].traffic.calls);
      EXPECT_EQ(counted.ranks[i].traffic.busy_ns, record.ranks[i].traffic.busy_ns);
      EXPECT_EQ(counted.ranks[i].at_peak, record.ranks[i].at_peak);
    }
  }
}

}  // namespace
}  // namespace ranklab
