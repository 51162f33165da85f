// Spans of modules and kernels on the timeline: which there are, that they nest, what they add up to, and that a run is
// the same with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/trace/lanes.h"
#include "core/trace/trace_level.h"
#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

TrainConfig traced(TrainConfig c, const char* level) {
  c.trace_level = level;
  return c;
}

std::string name_of(const RankTrace& trace, const Event& event) { return trace.names[event.name]; }

// How often each module was used in a step, by the name of its event; a use that was interrupted counts each time.
std::map<std::string, int> uses(const RankTrace& trace, int step) {
  std::map<std::string, int> count;
  for (const Event& event : trace.events)
    if (event.kind == EventKind::kModule && event.step == step) ++count[name_of(trace, event)];
  return count;
}

bool inside(const Event& inner, const Event& outer) {
  return outer.virtual_begin_ns <= inner.virtual_begin_ns && inner.virtual_end_ns <= outer.virtual_end_ns &&
         inner.step == outer.step;
}

// Every module is in an action of its microbatch, and a child in its parent; lanes need no second row for what crosses.
void expect_nested(const std::vector<RankTrace>& traces) {
  for (const RankTrace& trace : traces) {
    SCOPED_TRACE("rank " + std::to_string(trace.global_rank));
    const LaneMap lanes = assign_lanes(trace.events, TraceClock::kVirtual);
    for (const int lane : lanes.lanes) EXPECT_THAT(lane_name(lane), testing::Not(testing::StartsWith("compute #")));
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kModule) continue;
      const std::string name = name_of(trace, event), path = name.substr(0, name.find(' '));
      const std::string parent = path.substr(0, path.rfind('.')), suffix = name.substr(path.size());
      bool in_action = false, in_parent = parent.find('.') == std::string::npos || parent.starts_with("head");
      for (const Event& outer : trace.events) {
        if (!inside(event, outer)) continue;
        in_action |= outer.kind == EventKind::kCompute && outer.microbatch == event.microbatch;
        in_parent |= outer.kind == EventKind::kModule && name_of(trace, outer) == parent + suffix;
      }
      EXPECT_TRUE(in_action) << name;
      EXPECT_TRUE(in_parent) << name;
    }
  }
}

TEST(TraceLevels, HaveWhatTheyNameAndTrainAlike) {
  TrainConfig c = small_config();
  c.parallel = {.world = 4, .tp = 2, .pp = 2};
  c.num_microbatches = 4;
  const TrainingRecord plain = record_training(traced(c, "step"));
  for (size_t level = 0; level < kTraceLevelNames.size(); ++level) {
    SCOPED_TRACE(kTraceLevelNames[level]);
    const TrainingRecord run = record_training(traced(c, kTraceLevelNames[level].data()));
    expect_same_training(run, plain, kSameBits);
    EXPECT_EQ(run.steps.back().virtual_step_ms, plain.steps.back().virtual_step_ms);
    std::set<EventKind> kinds;
    for (const Event& event : run.traces[3].events) kinds.insert(event.kind);
    for (const EventKind kind : {EventKind::kPhase, EventKind::kCounter, EventKind::kCompute, EventKind::kCollective,
                                 EventKind::kModule, EventKind::kKernel})
      EXPECT_EQ(kinds.count(kind), static_cast<size_t>(level_of(kind)) <= level ? 1u : 0u) << static_cast<int>(kind);
  }
}

TEST(TraceLevels, APhaseIsNamed) {
  TrainConfig c = small_config();
  c.parallel = {.world = 2, .tp = 1};
  c.zero_stage = 1;
  const TrainingRecord run = record_training(traced(c, "step"));
  std::vector<std::string> phases;
  for (const Event& event : run.traces[0].events)
    if (event.kind == EventKind::kPhase && event.step == 1) phases.push_back(name_of(run.traces[0], event));
  EXPECT_THAT(phases, testing::ElementsAre("forward-backward", "gradient sync", "gradient norm", "optimizer",
                                           "parameter gather", "step"));
}

TEST(Modules, EachIsUsedOncePerMicrobatchAndDirection) {
  TrainConfig c = small_config();
  c.parallel = {.world = 2, .tp = 1, .pp = 2};
  c.num_microbatches = 4;
  const std::vector<RankTrace> traces = record_training(traced(c, "module")).traces;
  expect_nested(traces);
  const std::map<std::string, int> first = uses(traces[0], 1), last = uses(traces[1], 1);
  for (const char* layer : {"layers.0", "layers.1"}) {
    for (const char* part : {"", ".attention_norm", ".attention", ".mlp_norm", ".mlp"}) {
      const std::string path = std::string(layer) + part;
      EXPECT_EQ(first.count(path) == 1 ? first.at(path) : 0, 4) << path;
      EXPECT_EQ(first.count(path + " backward") == 1 ? first.at(path + " backward") : 0, 4) << path;
      EXPECT_EQ(last.count(path), 0u) << path;
    }
  }
  EXPECT_EQ(first.at("embedding"), 4);
  EXPECT_EQ(last.at("layers.3.mlp backward"), 4);
  EXPECT_EQ(last.at("head"), 4);
  EXPECT_EQ(last.at("head backward"), 4);
}

TEST(Modules, NestInEveryKindOfPass) {
  TrainConfig c = small_config();
  c.parallel = {.world = 4, .tp = 1, .pp = 2};
  c.pipeline_schedule = "zb-h1";
  c.num_microbatches = 4;
  c.recompute_granularity = "full";
  const std::vector<RankTrace> recomputed = record_training(traced(c, "module")).traces;
  expect_nested(recomputed);
  const std::map<std::string, int> count = uses(recomputed[0], 1);
  EXPECT_EQ(count.at("layers.1.attention"), 4);
  EXPECT_EQ(count.at("layers.1.attention recompute"), 4);
  EXPECT_EQ(count.at("layers.1.attention backward"), 4);

  c.recompute_granularity = "none";
  c.pipeline_schedule = "1f1b";
  c.zero_stage = 3;
  c.parallel = {.world = 4, .tp = 2};
  expect_nested(record_training(traced(c, "module")).traces);
}

TEST(Modules, OfExpertsNestAlsoWhereTwoMicrobatchesRunInTurns) {
  TrainConfig c = small_config();
  variant_named("deepseek_experts").change(c.model);
  c.parallel = {.world = 4, .ep = 4};
  c.global_batch_size = 16;
  c.num_microbatches = 4;
  for (const bool overlap : {false, true}) {
    SCOPED_TRACE(overlap);
    c.overlap_moe = overlap;
    const std::vector<RankTrace> traces = record_training(traced(c, "kernel")).traces;
    expect_nested(traces);
    const std::map<std::string, int> count = uses(traces[0], 1);
    const std::string layer = "layers.2.mlp.";
    for (const char* part : {"router", "dispatch", "experts", "combine"}) {
      for (const char* pass : {"", " backward"}) {
        const auto found = count.find(layer + part + pass);
        ASSERT_NE(found, count.end()) << part << pass;
        if (overlap)
          EXPECT_GE(found->second, 4) << part << pass;
        else
          EXPECT_EQ(found->second, 4) << part << pass;
      }
    }
  }
}

// Kernels fill the virtual clock: those of a rank's step and its waits are the step, and FLOPs of modules are their
// kernels'.
TEST(Kernels, AddUpToTheTimeAndTheFlops) {
  TrainConfig c = small_config();
  c.parallel = {.world = 2, .tp = 2};
  c.num_microbatches = 2;
  const RankTrace trace = record_training(traced(c, "kernel")).traces[1];
  const Event* step = nullptr;
  for (const Event& event : trace.events)
    if (event.kind == EventKind::kPhase && event.step == 1 && name_of(trace, event) == "step") step = &event;
  ASSERT_NE(step, nullptr);
  int64_t kernels_ns = 0, waits_ns = 0, last_end = 0;
  double gemm_flops = 0, module_flops = 0;
  std::set<std::string> names;
  for (const Event& event : trace.events) {
    if (event.step != 1) continue;
    waits_ns += event.virtual_exposed_ns + event.virtual_peer_wait_ns;
    if (event.kind == EventKind::kModule && name_of(trace, event) == "layers.2.mlp") module_flops += event.value;
    if (event.kind != EventKind::kKernel || !inside(event, *step)) continue;
    EXPECT_GE(event.virtual_begin_ns, last_end) << "kernels of a rank run one after another";
    last_end = event.virtual_end_ns;
    kernels_ns += event.virtual_end_ns - event.virtual_begin_ns;
    names.insert(name_of(trace, event));
    EXPECT_GE(event.tag, 0);
    EXPECT_LE(event.tag, 2);
  }
  EXPECT_EQ(kernels_ns + waits_ns, step->virtual_end_ns - step->virtual_begin_ns);
  for (const Event& module : trace.events) {
    if (module.step != 1 || module.kind != EventKind::kModule || name_of(trace, module) != "layers.2.mlp") continue;
    for (const Event& event : trace.events)
      if (event.kind == EventKind::kKernel && inside(event, module) && event.microbatch == module.microbatch)
        gemm_flops += event.value;
  }
  // Two microbatches of 4 sequences of 16 tokens: gate, up and down of half the width.
  EXPECT_EQ(module_flops, 2 * 2 * (4.0 * 16) * 32 * (3 * 48 / 2));
  EXPECT_EQ(gemm_flops, module_flops);
  EXPECT_THAT(names, testing::IsSupersetOf({"flash_attention", "norm", "swiglu", "sum_of_squares"}));
  EXPECT_THAT(names, testing::Contains("gemm 64x48x32")) << "gate and up: 64 tokens, two halves of 24, from 32";
}

}  // namespace
}  // namespace ranklab
