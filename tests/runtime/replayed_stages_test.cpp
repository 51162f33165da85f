// Passes of pipeline stages that are recorded and replayed give the bits of passes that are not: over the host, with a
// recorder that checks what a recording would freeze (tests/support/checked_recorder.h).
#include "core/runtime/pipeline/replayed_stages.h"

#include <gtest/gtest.h>

#include <map>

#include "core/pipeline/csv.h"
#include "core/runtime/pipeline/replayed_function.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/support/checked_recorder.h"
#include "tests/support/expect_training.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

// Three steps of six microbatches in two stages, but for what the row says. Each rank's graphs: of `slots` microbatches
// in flight, with as many parts as each has.
struct StagesRow {
  const char* name;
  int graphs;  // of all ranks; -1: not counted
  void (*change)(TrainConfig&);
};
// Two microbatches through a V of four stages, in which a gradient waits on its rank while the slot that made it is
// used again: the second stage's backwards follow those of the third.
std::string late_backwards() {
  Schedule schedule{"late-backwards", 2, {0, 1, 1, 0}, 4, std::vector<std::vector<Action>>(2)};
  for (const int i : {0, 1}) {
    for (const Action& action : {forward(0, i), forward(3, i), backward(3, i)}) schedule.ranks[0].push_back(action);
    for (const Action& action : {forward(1, i), forward(2, i), backward(2, i)}) schedule.ranks[1].push_back(action);
  }
  for (const int i : {0, 1}) {
    schedule.ranks[0].push_back(backward(0, i));
    schedule.ranks[1].push_back(backward(1, i));
  }
  const std::string path = testing::TempDir() + "/late_backwards.csv";
  write_schedule(schedule, path, ScheduleDialect::kRanklab);
  return path;
}

const StagesRow kStagesRows[] = {
    {"1f1b", 2 * (2 + 1), [](TrainConfig&) {}},
    {"gpipe, dropout, recompute", 2 * (6 + 6),
     [](TrainConfig& c) {
       c.pipeline_schedule = "gpipe";
       c.model.dropout = 0.2;
       c.model.attention_dropout = 0.1;
       c.recompute_granularity = "full";
     }},
    {"interleaved, tied, ZeRO 2", -1,
     [](TrainConfig& c) {
       c.pipeline_schedule = "interleaved-1f1b";
       c.virtual_stages = 2;
       c.parallel = {.world = 4, .pp = 2};
       c.model.tie_embeddings = true;
       c.zero_stage = 2;
     }},
    {"zb-h1: divided backwards, bf16", -1,
     [](TrainConfig& c) {
       c.pipeline_schedule = "zb-h1";
       c.params_dtype = "fp32";
       c.bf16 = true;
     }},
    {"zb-2p, tp 2, sequence parallelism, dropout", -1,
     [](TrainConfig& c) {
       c.pipeline_schedule = "zb-2p";
       c.parallel = {.world = 4, .tp = 2, .pp = 2};
       c.sequence_parallel = true;
       c.model.dropout = 0.2;
     }},
    {"zb-v, fp16, a growing loss scale", -1,
     [](TrainConfig& c) {
       c.pipeline_schedule = "zb-v";
       c.params_dtype = "fp32";
       c.precision.fp16 = true;
       c.precision.loss_scale_window = 1;
     }},
    {"v-half, tied: first and last stage on one rank", -1,
     [](TrainConfig& c) {
       c.pipeline_schedule = "v-half";
       c.model.tie_embeddings = true;
     }},
    {"dualpipe: two copies", -1, [](TrainConfig& c) { c.pipeline_schedule = "dualpipe"; }},
    {"dualpipe-v, pairwise sums", -1,
     [](TrainConfig& c) {
       c.pipeline_schedule = "dualpipe-v";
       c.accumulation = Accumulation::kPairwise;
     }},
    {"three stages, clipped", 2 * (3 + 2 + 1),
     [](TrainConfig& c) {
       c.parallel = {.world = 3, .pp = 3};
       c.clip_grad = 0.1;
       c.model.num_layers = 3;
     }},
    {"gradients that wait", -1,
     [](TrainConfig& c) {
       c.pipeline_schedule = late_backwards();
       c.num_microbatches = 2;
       c.train_iters = 4;
     }},
    {"one microbatch, clipped", 2 * 3,
     [](TrainConfig& c) {
       c.pipeline_schedule = "zb-h1";
       c.num_microbatches = 1;
       c.train_iters = 6;
       c.clip_grad = 0.1;
     }},
    {"one microbatch, tied: first and last stage on one rank", -1,
     [](TrainConfig& c) {
       c.pipeline_schedule = "v-half";
       c.num_microbatches = 1;
       c.train_iters = 6;
       c.model.tie_embeddings = true;
     }},
    {"each microbatch reduced", -1,
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .pp = 2};
       c.zero_stage = 2;
       c.grad_sync = GradSync::kMicrobatch;
     }},
    {"a growing batch", -1,
     [](TrainConfig& c) {
       c.rampup_batch_size = "4 4 8";
       c.train_iters = 4;
     }},
};

TrainConfig stages_config(const StagesRow& row) {
  TrainConfig c = small_config();
  c.backend = "cuda";
  c.parallel = {.world = 2, .pp = 2};
  c.global_batch_size = 12;
  c.num_microbatches = 6;
  c.train_iters = 3;
  c.trace = false;
  row.change(c);
  return c;
}

TEST(ReplayedStages, GiveTheBitsOfPassesThatAreNotRecorded) {
  for (const StagesRow& row : kStagesRows) {
    SCOPED_TRACE(row.name);
    TrainConfig config = stages_config(row);
    const auto seen = std::make_shared<RecorderCounts>();
    const auto make_world = [&](int size) { return with_checked_recorder(make_test_world(size), seen); };
    const TrainingRecord want = record_training(config, {.make_world = make_world});
    EXPECT_EQ(seen->warm_ups + seen->recordings, 0);
    config.cuda_graph = true;
    expect_same_training(record_training(config, {.make_world = make_world}), want, kSameBits);
    EXPECT_GT(seen->replays, 0);
    if (row.graphs >= 0) {
      EXPECT_EQ(seen->recordings, row.graphs);
    }
    EXPECT_EQ(seen->live, 0);
  }
}

// A stage then holds ever more microbatches at a time; graphs that it has already stay.
TEST(ReplayedStages, GrowWithTheBatch) {
  TrainConfig config = stages_config({"", -1, [](TrainConfig& c) {
                                        c.pipeline_schedule = "zb-h1";
                                        c.rampup_batch_size = "0:2 12:12";
                                        c.train_iters = 9;
                                      }});
  const auto seen = std::make_shared<RecorderCounts>();
  const auto make_world = [&](int size) { return with_checked_recorder(make_test_world(size), seen); };
  const TrainingRecord want = record_training(config, {.make_world = make_world});
  config.cuda_graph = true;
  expect_same_training(record_training(config, {.make_world = make_world}), want, kSameBits);
  EXPECT_EQ(seen->warm_ups, 2 * ReplayedFunction::kWarmUps * 3) << "three parts of one microbatch in each step";
  EXPECT_EQ(seen->recordings, 3 * (2 + 2));
}

// Graphs of microbatches that are in flight together hold their memory together.
TEST(GraphMemory, AddsUpWhatRecordingsTook) {
  install_booking_allocator();
  const auto book = std::make_shared<MemoryBook>();
  set_thread_memory_book(book);
  GraphMemory memory;
  for (const int64_t bytes : {1 << 20, 1 << 21}) memory.measure([&] { c10::GetAllocator(c10::kCPU)->allocate(bytes); });
  book->reset_peaks();
  memory.note_replay();
  EXPECT_EQ(book->peak_bytes(), 3 << 20);
  set_thread_memory_book(nullptr);
}

// Each pass is a span of its stage, as without graphs.
TEST(ReplayedStages, AreTheSpansOfTheTimeline) {
  TrainConfig config = stages_config({"", -1, [](TrainConfig& c) { c.pipeline_schedule = "zb-h1"; }});
  config.trace = true;
  config.trace_level = "action";
  const auto passes = [&](bool graphs) {
    config.cuda_graph = graphs;
    const auto seen = std::make_shared<RecorderCounts>();
    const TrainingRecord record = record_training(
        config, {.make_world = [&](int size) { return with_checked_recorder(make_test_world(size), seen); }});
    std::map<std::pair<int, int>, int> count;  // forwards of stages, by step
    for (const RankTrace& trace : record.traces)
      for (const Event& event : trace.events) {
        if (event.kind != EventKind::kCompute || trace.names[event.name] != "F") continue;
        EXPECT_LT(event.virtual_begin_ns, event.virtual_end_ns);
        ++count[{event.step, event.stage}];
      }
    return count;
  };
  const auto want = passes(false);
  EXPECT_EQ(want.size(), 3u * 2);
  EXPECT_EQ(passes(true), want);
}

}  // namespace
}  // namespace ranklab
