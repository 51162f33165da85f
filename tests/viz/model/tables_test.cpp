// Memory, curves, mesh and operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "tests/cli/run_program.h"
#include "tests/viz/model/make_trace.h"
#include "viz/model/curves.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/memory_table.h"
#include "viz/model/tables/mesh_layout.h"
#include "viz/model/tables/mesh_table.h"
#include "viz/model/tables/op_table.h"

namespace ranklab::viz {
namespace {

using ::testing::ElementsAre;

TraceStore counting_store() {
  std::vector<RankTrace> ranks;
  for (const int rank : {0, 1}) {
    Tracer tracer(rank, "");
    tracer.set_group(Axis::kTp, {0, 1});
    tracer.set_group(Axis::kDp, {rank});
    for (const int step : {0, 1}) {
      const int64_t at = 100 * step;
      tracer.record(samples::counter(tracer, "memory/parameters", at, 1000, step));
      tracer.record(samples::counter(tracer, "memory/activations", at, 0, step));
      tracer.record(samples::counter(tracer, "memory/parameters", at + 50, 1000, step));
      tracer.record(samples::counter(tracer, "memory/activations", at + 50, 500 + 100 * rank + step, step));
      tracer.record(samples::phase(tracer, "step", at, at + 80 + 10 * rank, step));
      tracer.record(samples::counter(tracer, "loss", at + 90, 5.0 - step + 0.5 * rank, step));
    }
    ranks.push_back(tracer.take());
  }
  return TraceStore(samples::file_of(std::move(ranks)));
}

TEST(MemoryTable, PeaksWithWhatTheyAreMadeOf) {
  const TraceStore store = counting_store();
  const std::vector<RankMemory> table = memory_table(store, store.whole());
  ASSERT_EQ(table.size(), 2U);
  EXPECT_TRUE(has_memory(table));
  ASSERT_EQ(table[1].samples.size(), 4U);
  EXPECT_DOUBLE_EQ(table[1].samples[0].total(), 1000);
  EXPECT_DOUBLE_EQ(table[1].peak.total(), 1601);
  EXPECT_EQ(table[1].peak.time_ns, 150);
  EXPECT_EQ(table[1].peak.step, 1);
  EXPECT_DOUBLE_EQ(table[1].peak.bytes[static_cast<size_t>(MemoryCategory::kActivations)], 601);
  EXPECT_DOUBLE_EQ(table[0].other_bytes, 0);
  const std::vector<RankMemory> first = memory_table(store, *store.step_window(0));
  EXPECT_DOUBLE_EQ(first[1].peak.total(), 1600);
}

TEST(MemoryTable, AMomentBetweenTwoSamplesOfOneTimeIsNotLost) {
  Tracer tracer(0, "");
  for (const double activations : {5.0, 900.0, 20.0}) {
    tracer.record(samples::counter(tracer, "memory/activations", 100, activations, 0));
    tracer.record(samples::counter(tracer, "memory/parameters", 100, 7, 0));
  }
  const TraceStore store(samples::file_of({tracer.take()}));
  const RankMemory rank = memory_table(store, store.whole())[0];
  ASSERT_EQ(rank.samples.size(), 3U);
  EXPECT_DOUBLE_EQ(rank.peak.total(), 907);
  EXPECT_DOUBLE_EQ(rank.samples.back().total(), 27);
}

// What a plot marks is a sample in the part that it shows.
TEST(MemoryTable, TheFullestSampleOfAPart) {
  Tracer tracer(0, "");
  for (const auto& [at, value] : {std::pair(0, 10.0), {100, 2048.0}, {200, 30.0}, {300, 1024.0}})
    tracer.record(samples::counter(tracer, "memory/parameters", at, value, at / 200));
  const TraceStore store(samples::file_of({tracer.take()}));
  const RankMemory rank = memory_table(store, store.whole())[0];
  const auto in = [&](int64_t begin, int64_t end) { return fullest(rank, {begin, end}).value(); };
  EXPECT_EQ(in(0, 400).time_ns, 100);
  EXPECT_EQ(fullest_text(rank, in(0, 400)), "peak 2.00 KiB");
  EXPECT_EQ(in(210, 400).time_ns, 300);
  EXPECT_EQ(fullest_text(rank, in(210, 400)), "1.00 KiB here, peak 2.00 KiB in step 0");
  EXPECT_EQ(in(150, 250).time_ns, 100) << "still held when the part begins";
  EXPECT_FALSE(fullest(rank, {-20, -10}).has_value());
}

TEST(MemoryTable, TextAndShareOfTheLimit) {
  Tracer tracer(3, "");
  tracer.record(samples::counter(tracer, "memory/limit", 0, 4096, 0));
  tracer.record(samples::counter(tracer, "memory/optimizer", 0, 1024, 0));
  const TraceStore store(samples::file_of({tracer.take()}));
  const std::vector<RankMemory> table = memory_table(store, store.whole());
  EXPECT_DOUBLE_EQ(table[0].limit_bytes, 4096);
  EXPECT_DOUBLE_EQ(table[0].other_bytes, 0) << "the limit is no memory in use";
  EXPECT_DOUBLE_EQ(table[0].share_of_limit(), 0.25);
  const std::string text = memory_text(table);
  EXPECT_NE(text.find("r3"), std::string::npos) << text;
  EXPECT_NE(text.find("1.00 KiB"), std::string::npos) << text;
  EXPECT_NE(text.find("25 %"), std::string::npos) << text;
}

TEST(MemoryTable, UnknownCategoriesAreTold) {
  Tracer tracer(0, "");
  tracer.record(samples::counter(tracer, "memory/magic", 0, 64));
  const TraceStore store(samples::file_of({tracer.take()}));
  EXPECT_DOUBLE_EQ(memory_table(store, store.whole())[0].other_bytes, 64);
  EXPECT_FALSE(has_memory(memory_table(store, store.whole())));
}

TEST(Curves, MeanAndEnvelopeOverRanks) {
  const std::vector<Curve> list = curves(counting_store());
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].name, "loss");
  ASSERT_EQ(list[0].points.size(), 2U);
  EXPECT_DOUBLE_EQ(list[0].points[0].value, 5.25);
  EXPECT_DOUBLE_EQ(list[0].points[0].low, 5);
  EXPECT_DOUBLE_EQ(list[0].points[0].high, 5.5);
  EXPECT_DOUBLE_EQ(list[0].skew(), 0.5 / 4.25);
  EXPECT_EQ(list[1].name, "step time");
  EXPECT_EQ(list[1].unit, "ms");
  EXPECT_EQ(list[1].source, "model");
  EXPECT_DOUBLE_EQ(list[1].points[1].value, 85e-6);
}

TEST(Curves, AreShownInUnitsThatPeopleRead) {
  Curve share{.name = "mfu", .unit = "share", .source = "model", .points = {{0, 0.25, 0.125, 0.5}}, .bad_steps = {}};
  const Curve percent = in_shown_unit(share);
  EXPECT_EQ(percent.unit, "%");
  EXPECT_DOUBLE_EQ(percent.points[0].value, 25);
  EXPECT_DOUBLE_EQ(percent.points[0].low, 12.5);
  EXPECT_DOUBLE_EQ(percent.points[0].high, 50);
  share.unit = "bytes";
  share.points[0].value = 3 << 20;
  EXPECT_DOUBLE_EQ(in_shown_unit(share).points[0].value, 3);
  share.unit = "ms";
  EXPECT_DOUBLE_EQ(in_shown_unit(share).points[0].value, 3 << 20);
}

TEST(Curves, NotANumberIsMarked) {
  Tracer tracer(0, "");
  tracer.record(samples::counter(tracer, "loss", 0, 1, 0));
  tracer.record(samples::counter(tracer, "loss", 1, std::numeric_limits<double>::quiet_NaN(), 1));
  const std::vector<Curve> list = curves(TraceStore(samples::file_of({tracer.take()})));
  EXPECT_THAT(list.at(0).bad_steps, ElementsAre(1));
  EXPECT_TRUE(std::isnan(list[0].points[1].value));
}

TEST(Curves, MetricsFileBesideTheTrace) {
  const std::string folder = temporary_path("curves");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/metrics.jsonl") << R"({"step":0,"loss":5.5,"tokens_per_s":100,"mfu":0.25})"
                                           << "\n"
                                           << R"({"step":1,"loss":null,"tokens_per_s":120,"mfu":0.5})"
                                           << "\n"
                                           << R"({"step":2,"lo)";
  EXPECT_EQ(metrics_path(folder + "/trace.json.gz"), folder + "/metrics.jsonl");
  EXPECT_EQ(metrics_path("/nowhere/trace.json.gz"), "");
  const std::vector<Curve> list = read_metrics(folder + "/metrics.jsonl");
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].name, "loss");
  EXPECT_THAT(list[0].bad_steps, ElementsAre(1));
  EXPECT_EQ(list[1].name, "mfu");
  EXPECT_EQ(list[1].source, "model");
  EXPECT_EQ(list[2].unit, "tokens/s");
  EXPECT_DOUBLE_EQ(list[2].points[1].value, 120);
}

TEST(Curves, SmoothingKeepsAConstant) {
  std::vector<CurvePoint> points = {{0, 4, 4, 4}, {1, 4, 4, 4}, {2, 8, 8, 8}};
  points = smoothed(points, 3);  // alpha 1/2
  EXPECT_DOUBLE_EQ(points[1].value, 4);
  EXPECT_DOUBLE_EQ(points[2].value, 6);
  EXPECT_DOUBLE_EQ(points[2].high, 8);
}

TEST(MeshTable, CoordinatesAndGroups) {
  const MeshTable table = mesh_table(counting_store());
  ASSERT_EQ(table.ranks.size(), 2U);
  EXPECT_THAT(table.axes, ElementsAre(Axis::kTp));
  EXPECT_EQ(table.coordinate(1, Axis::kTp), 1);
  EXPECT_EQ(table.coordinate(1, Axis::kDp), 0);
  EXPECT_EQ(table.coordinate(1, Axis::kPp), -1);
  ASSERT_EQ(table.groups.size(), 3U);  // one of tp, two of dp
  EXPECT_THAT(table.groups[0].global_ranks, ElementsAre(0, 1));
}

// A mesh with these axes, the first the fastest.
MeshTable made_mesh(const std::vector<std::pair<Axis, int>>& axes) {
  int world = 1;
  for (const auto& [axis, size] : axes) world *= size;
  MeshTable table;
  table.ranks.resize(static_cast<size_t>(world));
  int stride = 1;
  for (const auto& [axis, size] : axes) {
    table.axes.push_back(axis);
    for (int rank = 0; rank < world; ++rank) {
      const int position = rank / stride % size;
      table.ranks[static_cast<size_t>(rank)].global_rank = rank;
      table.ranks[static_cast<size_t>(rank)].coordinates.emplace_back(axis, position);
      if (position > 0) continue;
      MeshGroup group{axis, {}};
      for (int i = 0; i < size; ++i) group.global_ranks.push_back(rank + i * stride);
      table.groups.push_back(group);
    }
    stride *= size;
  }
  return table;
}

TEST(MeshLayout, TheFastestAxisIsARowTheNextAColumnOthersPlanes) {
  const MeshLayout layout = mesh_layout(made_mesh({{Axis::kTp, 2}, {Axis::kDp, 3}, {Axis::kPp, 2}}));
  EXPECT_EQ(layout.columns, 2);
  EXPECT_EQ(layout.rows, 3);
  EXPECT_THAT(layout.planes, ElementsAre("pp 0", "pp 1"));
  EXPECT_EQ(layout.tiles[3], (MeshTile{0, 1, 1}));
  EXPECT_EQ(layout.tiles[10], (MeshTile{1, 2, 0}));
  std::map<Axis, int> links;
  for (const MeshLink& link : layout.links) ++links[link.axis];
  EXPECT_EQ(links[Axis::kTp], 6);
  EXPECT_EQ(links[Axis::kDp], 8);
  EXPECT_EQ(links[Axis::kPp], 6);
}

TEST(MeshLayout, OneAxisIsALineThatWraps) {
  // Experts on the ranks of dp: the same line once.
  MeshTable table = made_mesh({{Axis::kDp, 12}});
  table.axes.push_back(Axis::kEp);
  const MeshLayout layout = mesh_layout(table);
  EXPECT_EQ(layout.columns, 8);
  EXPECT_EQ(layout.rows, 2);
  EXPECT_EQ(layout.tiles[9], (MeshTile{0, 1, 1}));
  EXPECT_EQ(layout.links.size(), 11U);
}

TEST(MeshTable, MetricsOfRanks) {
  const TraceStore store = samples::straggler_store();
  EXPECT_EQ(rank_metric(store, store.whole(), RankMetric::kBusy)[0].text, "80.00 %");
  EXPECT_EQ(rank_metric(store, store.whole(), RankMetric::kBubble)[1].text, "26.67 %");
  EXPECT_EQ(rank_metric(store, store.whole(), RankMetric::kExposed)[1].text, "20.00 %");
  EXPECT_EQ(rank_metric(store, store.whole(), RankMetric::kBytesSent)[1].text, "1000 B");
  EXPECT_EQ(rank_metric(store, store.whole(), RankMetric::kEvents)[0].text, "3");
  // In a live run, a rank that has not reported anything yet is not idle.
  TraceStore live = samples::straggler_store();
  RankTrace silent;
  silent.global_rank = 2;
  live.append(silent);
  live.set_live(true);
  EXPECT_EQ(rank_metric(live, live.whole(), RankMetric::kBusy)[2].text, "not recorded");
}

TEST(Curves, AnAxisShowsWhatIsThere) {
  EXPECT_EQ(axis_limits(0, 0), std::pair(-1.0, 1.0)) << "and no multiples of 1e-13";
  EXPECT_EQ(axis_limits(0, 100), std::pair(-8.0, 108.0));
  EXPECT_EQ(axis_limits(-100, -100), std::pair(-101.0, -99.0));
}

TEST(OpTable, TotalsByName) {
  const TraceStore store = samples::straggler_store();
  const std::vector<OpRow> ops = op_table(store, store.whole());
  ASSERT_EQ(ops.size(), 3U);
  EXPECT_EQ(ops[0].name, "F");
  EXPECT_EQ(ops[0].time.count, 2);
  EXPECT_EQ(ops[0].time.total_ns, 160);
  EXPECT_DOUBLE_EQ(ops[0].time.mean_ns(), 80);
  EXPECT_EQ(ops[1].name, "all_reduce dp");
  EXPECT_EQ(ops[1].wire_bytes, 1000);
  EXPECT_DOUBLE_EQ(overlap(ops).value(), 0);
  EXPECT_EQ(overlap({}), std::nullopt) << "no communication";
}

// On the wall clock waits are not recorded: a row's exposed time is what the rank's is, the part outside compute.
TEST(OpTable, ExposedTimeOnTheWallClockIsThatOfTheRanks) {
  Tracer tracer(0, "");
  tracer.set_group(Axis::kDp, {0, 1});
  tracer.record(samples::on_wall_clock(samples::compute(tracer, "F", 0, 0), 0, 60));
  tracer.record(samples::on_wall_clock(samples::call(tracer, {}), 40, 80));
  tracer.record(samples::on_wall_clock(samples::compute(tracer, "optimizer", 0, 0), 80, 100));
  TraceFile file;
  file.clock = TraceClock::kWall;
  file.ranks = {tracer.trace()};
  const TraceStore store(std::move(file));
  const std::vector<OpRow> ops = op_table(store, store.whole());
  const auto call = std::ranges::find(ops, "all_reduce dp", &OpRow::name);
  ASSERT_NE(call, ops.end());
  EXPECT_EQ(call->exposed_ns, 20);
  EXPECT_EQ(find_bubbles(store, store.whole()).all.exposed_ns, 20);
  EXPECT_DOUBLE_EQ(overlap(ops).value(), 0.5);
}

}  // namespace
}  // namespace ranklab::viz
