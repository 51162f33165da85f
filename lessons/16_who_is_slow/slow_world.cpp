#include "lessons/16_who_is_slow/slow_world.h"

#include <algorithm>

#include "core/trace/chrome_reader.h"
#include "viz/model/insights/insight.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::lesson {
namespace {

constexpr int kSteps = 4;
constexpr int64_t kComputeNs = 1'000'000;
const ParallelDims kDims{.world = 8, .pp = 2};

void compute(RankContext& ctx, int step, int64_t ns) {
  const int64_t begin_ns = ctx.clock().now_ns();
  ctx.clock().advance(ns);
  ctx.tracer().record({.kind = EventKind::kCompute,
                       .name = ctx.tracer().intern("BW"),
                       .step = step,
                       .virtual_begin_ns = begin_ns,
                       .virtual_end_ns = ctx.clock().now_ns()});
}

}  // namespace

SlowWorld slow_world(const Slowness& slowness) {
  SlowWorld world;
  world.ranks.resize(8);
  const std::vector<RankRecord> records = run_ranks({.dims = kDims}, [&](RankContext& ctx) {
    const int rank = ctx.global_rank(), stage = ctx.coordinate(Axis::kPp);
    const double work = (stage == 1 ? slowness.stage_1 : 1) * (rank == slowness.rank ? slowness.times : 1);
    std::vector<double> gradient(8);
    for (int step = 0; step < kSteps; ++step) {
      ctx.tracer().set_step(step);
      compute(ctx, step, static_cast<int64_t>(work * static_cast<double>(kComputeNs)));
      make_comm(ctx.comm(Axis::kDp))->all_reduce(gradient);
      make_comm(ctx.comm(Axis::kPp))->all_reduce(gradient);
    }
    constexpr double kUs = 1e-3 / kSteps;
    world.ranks[static_cast<size_t>(rank)] = {.stage = stage,
                                              .computes = static_cast<double>(ctx.clock().compute_ns()) * kUs,
                                              .waits = static_cast<double>(ctx.clock().peer_wait_ns()) * kUs};
  });
  for (const RankRecord& record : records)
    world.step_us = std::max(world.step_us, static_cast<double>(record.virtual_ns) * 1e-3 / kSteps);
  const viz::TraceStore store(TraceFile{.ranks = traces_of(records), .world_size = 8});
  for (const viz::Insight& one : viz::find_insights(store, store.whole()))
    if (one.rule == "straggler") world.insight = one.text;
  return world;
}

}  // namespace ranklab::lesson
