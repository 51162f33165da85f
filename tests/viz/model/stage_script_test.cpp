// The stage's script: places of rooms, what is where at a time, and in which words.
#include "viz/model/stage/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/pipeline/schedules.h"
#include "tests/viz/model/stage_sample.h"
#include "tests/viz/model/zero_sample.h"
#include "viz/model/stage/words.h"
#include "viz/model/store/generated_trace.h"
#include "viz/model/store/schedule_store.h"

namespace ranklab::viz {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

StageScript script_of(const TraceStore& store) { return stage_script(store, store.step_window(0).value()); }

std::vector<std::string> words(const StageScript& script) {
  std::vector<std::string> out;
  for (const StageLine& line : script.lines) out.push_back(std::to_string(line.time_ns) + " " + line.words);
  return out;
}

// Ranks without events, of a mesh whose axes are given innermost first, `gpus_per_node` to a node.
TraceStore mesh_store(const std::vector<std::pair<Axis, int>>& axes, int gpus_per_node) {
  int world = 1;
  for (const auto& [axis, size] : axes) world *= size;
  std::vector<RankTrace> ranks;
  for (int rank = 0; rank < world; ++rank) {
    Tracer tracer(rank, "");
    int stride = 1;
    for (const auto& [axis, size] : axes) {
      std::vector<int> group;
      const int first = rank - rank / stride % size * stride;
      for (int i = 0; i < size; ++i) group.push_back(first + i * stride);
      tracer.set_group(axis, group);
      stride *= size;
    }
    tracer.record(samples::compute(tracer, "F", 0, 100, 0, 0));
    ranks.push_back(tracer.take());
  }
  TraceFile file = samples::file_of(std::move(ranks));
  file.gpus_per_node = gpus_per_node;
  return TraceStore(std::move(file));
}

double middle_x(const StageRoom& room) { return (room.box.x0 + room.box.x1) / 2; }
double middle_y(const StageRoom& room) { return (room.box.y0 + room.box.y1) / 2; }

void expect_sound_places(const StageScript& script) {
  for (size_t i = 0; i < script.rooms.size(); ++i) {
    const StageBox& box = script.rooms[i].box;
    ASSERT_TRUE(box.x0 > 0 && box.y0 > 0 && box.x1 < 1 && box.y1 < 1 && box.width() > 0 && box.height() > 0);
    for (size_t k = 0; k < i; ++k) {
      const StageBox& other = script.rooms[k].box;
      ASSERT_FALSE(box.x0 < other.x1 && other.x0 < box.x1 && box.y0 < other.y1 && other.y0 < box.y1) << i << " " << k;
    }
  }
}

TEST(StageScript, says_what_each_room_does_and_why_it_waits) {
  const TraceStore store(samples::one_microbatch());
  const StageScript script = script_of(store);
  ASSERT_EQ(script.rooms.size(), 2u);
  const StageRoom &first = script.rooms[0], &second = script.rooms[1];
  EXPECT_EQ(first.name, "r0");
  EXPECT_EQ(first.coordinates, "pp0");
  EXPECT_LT(middle_x(first), middle_x(second));

  ASSERT_NE(at_time(first.actions, 99), nullptr);
  EXPECT_EQ(script.text(at_time(first.actions, 99)->text), "F0");
  EXPECT_EQ(at_time(first.actions, 100), nullptr);
  const StageWait* waits = at_time(first.waits, 250);
  ASSERT_NE(waits, nullptr);
  EXPECT_EQ(waits->cause, BubbleCause::kDependency);
  EXPECT_EQ(script.text(waits->text), "BW0 is still on r1");
  EXPECT_EQ(waits->room, 1);
  EXPECT_EQ(script.text(at_time(first.waits, 305)->text), "recv pp, 1.00 KiB on the way");
  EXPECT_EQ(at_time(second.waits, 350)->cause, BubbleCause::kDrain);

  EXPECT_EQ(module_at(first, 50), nullptr);
  ASSERT_NE(module_at(second, 150), nullptr);
  EXPECT_EQ(script.text(module_at(second, 150)->text), "layer 2 mlp");
  EXPECT_EQ(module_at(second, 150)->layer, 2);

  // Its activations are held from the forward to the backward.
  ASSERT_EQ(first.held.size(), 1u);
  EXPECT_EQ(first.held[0].range, (TimeRange{0, 400}));
  EXPECT_EQ(second.held[0].range, (TimeRange{110, 300}));
}

TEST(StageScript, messages_carry_their_microbatch_between_rooms) {
  const TraceStore store(samples::one_microbatch());
  const StageScript script = script_of(store);
  ASSERT_EQ(script.flows.size(), 2u);
  const StageFlow &there = script.flows[0], &back = script.flows[1];
  EXPECT_EQ(there.range, (TimeRange{100, 110}));
  EXPECT_EQ(there.microbatch, 0);
  EXPECT_FALSE(there.gradients);
  EXPECT_TRUE(back.gradients);
  EXPECT_EQ(there.dtype, DType::kBFloat16);
  EXPECT_EQ(there.bytes, 1024);
  EXPECT_EQ(script.kinds[there.kind].axis, Axis::kPp);
  const auto way = [&](const StageFlow& flow) { return script.paths[script.pair_sets[flow.pairs][0].path]; };
  EXPECT_EQ(way(there).from, 0);
  EXPECT_EQ(way(there).to, 1);
  EXPECT_EQ(way(back).from, 1);
  EXPECT_TRUE(way(there).between_nodes);  // a GPU per node
  // 1 KiB in 10 ns, as fast as anything here.
  EXPECT_EQ(script.fastest_bytes_per_s, 102'400'000'000);
  EXPECT_FLOAT_EQ(there.width, 1);
  // It goes from border to border.
  EXPECT_DOUBLE_EQ(way(there).x0, script.rooms[0].box.x1);
  EXPECT_DOUBLE_EQ(way(there).x1, script.rooms[1].box.x0);
}

TEST(StageScript, narrates_each_event_once) {
  const TraceStore store(samples::one_microbatch());
  const StageScript script = script_of(store);
  EXPECT_THAT(
      words(script),
      ElementsAre("0 r0 runs F0: forward of microbatch 0", "0 r1 waits 100 ns: F0 is still on r0",
                  "100 r0 sends activations of microbatch 0 to r1 (1.00 KiB bf16)",
                  "100 r1 waits 10 ns: recv pp, 1.00 KiB on the way", "100 r0 waits 200 ns: BW0 is still on r1",
                  "110 r1 runs F0: forward of microbatch 0", "210 r1 runs BW0: backward of microbatch 0",
                  "300 r1 sends gradients of microbatch 0 to r0 (1.00 KiB bf16)",
                  "300 r0 waits 10 ns: recv pp, 1.00 KiB on the way",
                  "300 r1 waits 100 ns: its work of the step is done", "310 r0 runs BW0: backward of microbatch 0"));
  EXPECT_EQ(lines_at(script, 99, 8).size(), 2u);
  EXPECT_EQ(lines_at(script, 100, 2)[1].words, "r0 waits 200 ns: BW0 is still on r1");
  EXPECT_TRUE(lines_at(script, -1, 8).empty());
}

TEST(StageScript, ranks_that_do_the_same_share_a_line) {
  const TraceStore store = mesh_store({{Axis::kTp, 2}, {Axis::kDp, 4}}, 8);
  EXPECT_THAT(words(script_of(store)), ElementsAre("0 r0-r7 run F0: forward of microbatch 0"));
}

TEST(StageScript, a_straggler_is_named) {
  const TraceStore store = samples::straggler_store();
  const StageScript script = script_of(store);
  EXPECT_THAT(words(script), Contains("60 r1 waits 40 ns: r0 comes last to all_reduce (it ran F0)"));
  ASSERT_EQ(script.flows.size(), 1u);
  EXPECT_EQ(script.pair_sets[script.flows[0].pairs].size(), 2u);  // a ring of two
  EXPECT_EQ(script.flows[0].bytes, 2000);
}

TEST(StageScript, marks_step_from_microbatch_to_microbatch) {
  const TraceStore store(samples::one_microbatch());
  const StageScript script = script_of(store);
  EXPECT_EQ(next_mark(script.microbatches, 0, -1), 110);
  EXPECT_EQ(next_mark(script.microbatches, 0, 0), 310);
  EXPECT_EQ(next_mark(script.microbatches, 310, -1), kNoTime);
  EXPECT_EQ(previous_mark(script.microbatches, 310, -1), 210);
  EXPECT_EQ(previous_mark(script.microbatches, 310, 0), 0);
  EXPECT_EQ(next_mark(script.layers, 0, -1), 120);
}

TEST(StageScript, holds_memory_against_its_limit) {
  const TraceStore store(samples::one_microbatch());
  const StageScript script = script_of(store);
  EXPECT_EQ(memory_at(script.rooms[0], 40)->total(), 600);
  EXPECT_EQ(memory_at(script.rooms[0], 60)->total(), 1000);
  EXPECT_EQ(memory_at(script.rooms[1], 60), nullptr);
  EXPECT_EQ(script.memory_top_bytes, 2000);  // the peak is half of the limit
}

TEST(StageScript, says_what_a_bar_of_memory_means) {
  StageScript script;
  script.memory_top_bytes = 16 << 20;
  EXPECT_EQ(memory_scale_text(script), "16.0 MiB");
  script.memory_limit_bytes = 80.0 * (1 << 30);
  EXPECT_EQ(memory_scale_text(script), "16.0 MiB, 0.02 % of the device's 80.0 GiB");
  script.memory_top_bytes = script.memory_limit_bytes;
  EXPECT_EQ(memory_scale_text(script), "80.0 GiB, the device's limit");
}

TEST(StageScript, buckets_have_short_names) {
  EXPECT_EQ(bucket_letter("layers.12"), "12");
  EXPECT_EQ(bucket_letter("layers.3 experts"), "3e");
  EXPECT_EQ(bucket_letter("embedding"), "e");
  EXPECT_EQ(bucket_letter(""), "");
  EXPECT_EQ(bits_of_format("E4M3"), 8);
  EXPECT_EQ(bits_of_format("E2M1"), 4);
}

TEST(StageScript, shards_light_up_and_go_dark) {
  const TraceStore store(samples::zero_run(3));
  const StageScript script = script_of(store);
  ASSERT_TRUE(script.has_shards());
  EXPECT_THAT(words(script), Contains("100 r0 gathers the parameters of layers.0"));
  EXPECT_THAT(words(script), Contains("200 r0 frees the parameters of layers.0"));
  EXPECT_FALSE(script_of(TraceStore(samples::zero_run(1))).has_shards());
}

TEST(StageScript, pipelines_go_from_left_to_right_and_nodes_have_frames) {
  const StageScript script = script_of(mesh_store({{Axis::kTp, 2}, {Axis::kPp, 4}}, 4));
  EXPECT_EQ(script.columns, 4);
  EXPECT_EQ(script.rows, 2);
  expect_sound_places(script);
  EXPECT_LT(middle_x(script.rooms[1]), middle_x(script.rooms[2]));
  EXPECT_EQ(middle_x(script.rooms[2]), middle_x(script.rooms[3]));
  ASSERT_EQ(script.nodes.size(), 2u);
  EXPECT_LT(script.nodes[0].box.x1, script.nodes[1].box.x0);
  EXPECT_GT(script.nodes[0].box.x1, script.rooms[3].box.x1);
}

TEST(StageScript, stages_of_several_columns_stand_apart) {
  const StageScript script = script_of(mesh_store({{Axis::kTp, 2}, {Axis::kDp, 2}, {Axis::kPp, 2}}, 0));
  EXPECT_EQ(script.columns, 4);
  expect_sound_places(script);
  const double inside = script.rooms[1].box.x0 - script.rooms[0].box.x1;
  const double between = script.rooms[4].box.x0 - script.rooms[1].box.x1;
  EXPECT_NEAR(inside, script.gap_x, 1e-9);
  EXPECT_GT(between, 1.5 * inside);
}

TEST(StageScript, a_long_pipeline_turns_back_in_the_next_line) {
  const StageScript script = script_of(mesh_store({{Axis::kPp, 8}}, 0));
  EXPECT_EQ(script.columns, 4);
  EXPECT_EQ(middle_x(script.rooms[3]), middle_x(script.rooms[4]));  // the fifth stage is below the fourth
  EXPECT_LT(middle_y(script.rooms[3]), middle_y(script.rooms[4]));
  EXPECT_TRUE(script.nodes.empty());
}

TEST(StageScript, large_worlds_shrink_and_then_fold_replicas) {
  const StageScript shrunk = script_of(mesh_store({{Axis::kTp, 4}, {Axis::kDp, 4}, {Axis::kPp, 4}}, 8));
  EXPECT_EQ(shrunk.rooms.size(), 64u);
  EXPECT_EQ(shrunk.folded_ranks, 0u);
  EXPECT_EQ(shrunk.nodes.size(), 8u);
  expect_sound_places(shrunk);
  const StageScript folded = script_of(mesh_store({{Axis::kTp, 8}, {Axis::kDp, 24}, {Axis::kPp, 2}}, 8));
  EXPECT_EQ(folded.rooms.size(), 256u);  // 16 of 24 replicas
  EXPECT_EQ(folded.folded_ranks, 128u);
  EXPECT_EQ(folded.room_of_rank(8 * 23), -1);
  EXPECT_EQ(folded.rooms[static_cast<size_t>(folded.room_of_rank(192))].global_rank, 192);
  expect_sound_places(folded);
}

// All flows, one by one.
std::vector<uint32_t> flows_by_hand(const StageScript& script, int64_t time, int64_t linger) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < script.flows.size(); ++i) {
    const TimeRange& range = script.flows[i].range;
    const bool there = range.end_ns > time - linger || (range.empty() && range.begin_ns == time);
    if (range.begin_ns <= time && there) out.push_back(static_cast<uint32_t>(i));
  }
  return out;
}

template <typename T>
void expect_disjoint(const std::vector<T>& intervals) {
  for (size_t i = 1; i < intervals.size(); ++i)
    ASSERT_GE(intervals[i].range.begin_ns, intervals[i - 1].range.end_ns) << i;
}

TEST(StageScript, a_large_step_is_looked_up_exactly) {
  const TraceStore store(generated_trace(100'000));
  const StageScript script = stage_script(store, store.whole());
  ASSERT_GT(script.flows.size(), 1000u);
  EXPECT_LE(script.lines.size(), 3000u);
  EXPECT_GT(script.lines.size(), 50u);
  for (const StageRoom& room : script.rooms) {
    expect_disjoint(room.actions);
    expect_disjoint(room.waits);
    for (const std::vector<StageModule>& modules : room.modules) expect_disjoint(modules);
  }
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int64_t> times(script.window.range.begin_ns, script.window.range.end_ns);
  std::vector<uint32_t> found;
  for (int i = 0; i < 200; ++i) {
    const int64_t time = times(random), linger = i % 2 == 0 ? 0 : script.linger_ns();
    flows_at(script, time, linger, found);
    ASSERT_EQ(found, flows_by_hand(script, time, linger));
  }
}

TEST(StageScript, a_long_call_is_found_behind_later_short_ones) {
  StageScript script;
  script.window.range = {0, 1000};
  for (const TimeRange range : {TimeRange{0, 900}, TimeRange{10, 20}, TimeRange{30, 40}, TimeRange{600, 700}}) {
    script.flows.emplace_back().range = range;
    script.flows_until_ns.push_back(900);
  }
  std::vector<uint32_t> found;
  flows_at(script, 500, 0, found);
  EXPECT_THAT(found, ElementsAre(0));
  flows_at(script, 45, 10, found);
  EXPECT_THAT(found, ElementsAre(0, 2));
  flows_at(script, 650, 0, found);
  EXPECT_THAT(found, ElementsAre(0, 3));
  flows_at(script, 950, 0, found);
  EXPECT_TRUE(found.empty());
}

TEST(StageScript, schedules_play_too) {
  const TraceStore store =
      schedule_store(make_schedule("1f1b", {.num_ranks = 4, .num_microbatches = 8}), ScheduleCosts{});
  const StageScript script = stage_script(store, store.whole());
  ASSERT_EQ(script.rooms.size(), 4u);
  EXPECT_EQ(script.rooms[0].held.size(), 8u);
  EXPECT_THAT(words(script), Contains(HasSubstr("r3 waits 3 units: F0 is still on r2")));
  EXPECT_FALSE(script.flows.empty());
}

TEST(StageScript, what_a_partial_trace_has_not_recorded_is_no_wait) {
  TraceStore store(samples::one_microbatch());
  store.set_live(true);
  const StageScript script = script_of(store);
  EXPECT_EQ(script.rooms[1].unrecorded, (TimeRange{310, 400}));
  EXPECT_EQ(at_time(script.rooms[1].waits, 350), nullptr);
  EXPECT_EQ(recorded_until(script), 310);
  store.set_live(false);
  EXPECT_EQ(recorded_until(script_of(store)), 400);
}

// An action is recorded when it ends: its modules and calls come before it.
TEST(StageScript, a_rank_inside_an_action_is_not_idle) {
  TraceFile file = samples::one_microbatch();
  RankTrace& rank = file.ranks[1];
  std::erase_if(rank.events, [&](const Event& event) { return rank.names[event.name] == "BW"; });
  for (Event& event : rank.events)
    if (event.kind == EventKind::kModule) event.virtual_begin_ns = 220, event.virtual_end_ns = 290;
  TraceStore store(std::move(file));
  store.set_live(true);
  const StageScript script = script_of(store);
  EXPECT_EQ(script.rooms[1].unrecorded, (TimeRange{210, 400}));
  EXPECT_EQ(recorded_until(script), 210);
}

TEST(StageScript, real_hardware_has_wall_time_only) {
  TraceFile file = samples::one_microbatch();
  file.clock = TraceClock::kWall;
  for (RankTrace& rank : file.ranks) {
    for (Event& event : rank.events) {
      event.wall_begin_ns = event.virtual_begin_ns + 1000;
      event.wall_end_ns = event.virtual_end_ns + 1000;
      if (event.kind == EventKind::kCollective) event.wall_matched_ns = event.virtual_matched_ns + 1000;
      event.virtual_begin_ns = event.virtual_end_ns = 0;
      event.virtual_posted_ns = event.virtual_matched_ns = event.virtual_first_byte_ns = kNoTime;
      event.virtual_exposed_ns = event.virtual_peer_wait_ns = 0;
    }
  }
  const TraceStore store(std::move(file));
  ASSERT_EQ(store.clock(), TraceClock::kWall);
  const StageScript script = script_of(store);
  EXPECT_EQ(script.text(at_time(script.rooms[0].actions, 1050)->text), "F0");
  ASSERT_EQ(script.flows.size(), 2u);
  EXPECT_EQ(script.flows[0].range, (TimeRange{1100, 1110}));
}

TEST(StageScript, nothing_gives_an_empty_one) {
  EXPECT_TRUE(stage_script(TraceStore(), {}).empty());
  EXPECT_EQ(stage_script(TraceStore(), {}).text(kNoText), "");
}

}  // namespace
}  // namespace ranklab::viz
