// Passes that are recorded once and replayed give the bits of passes that are not, and read nothing that a recording
// would freeze: over the host, with a recorder that checks it (tests/support/checked_recorder.h).
#include "core/runtime/pipeline/replayed_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/cuda/host_rounding.h"
#include "tests/support/checked_recorder.h"
#include "tests/support/expect_training.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

std::shared_ptr<RecorderCounts> counts() { return std::make_shared<RecorderCounts>(); }

double first(const ReplayedFunction::Result& result) { return result.outputs[0].item<double>(); }

at::Tensor number(double value) { return at::scalar_tensor(value, at::kDouble); }

TEST(ReplayedFunction, WarmsUpRecordsOnceAndReplays) {
  const auto seen = counts();
  ReplayedFunction doubled(make_checked_recorder(seen), [](const GraphTensors& in) { return GraphTensors{in[0] * 2}; });
  for (int i = 1; i <= 6; ++i) EXPECT_EQ(first(doubled({number(i)})), 2 * i);
  EXPECT_EQ(seen->warm_ups, ReplayedFunction::kWarmUps);
  EXPECT_EQ(seen->recordings, 1);
  EXPECT_EQ(seen->replays, 6 - ReplayedFunction::kWarmUps);
}

TEST(ReplayedFunction, AReplayWritesWhereTheLastOneDid) {
  ReplayedFunction doubled(make_checked_recorder(counts()), [](const GraphTensors& in) {
    return GraphTensors{in[0] * 2, at::Tensor()};
  });
  for (int i = 0; i < ReplayedFunction::kWarmUps; ++i) doubled({number(0)});
  const ReplayedFunction::Result before = doubled({number(1)}), after = doubled({number(2)});
  EXPECT_EQ(before.outputs[0].const_data_ptr(), after.outputs[0].const_data_ptr());
  EXPECT_EQ(first(before), 4);
  EXPECT_FALSE(after.outputs[1].defined());
}

TEST(ReplayedFunction, AnotherShapeIsRecordedAnew) {
  const auto seen = counts();
  ReplayedFunction sum(make_checked_recorder(seen), [](const GraphTensors& in) { return GraphTensors{in[0].sum()}; });
  const auto ones = [](int64_t count) { return at::full({count}, 1.0, at::kDouble); };
  for (int i = 0; i < 5; ++i) EXPECT_EQ(first(sum({ones(4)})), 4);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(first(sum({ones(3)})), 3);
  EXPECT_EQ(seen->warm_ups, 2 * ReplayedFunction::kWarmUps);
  EXPECT_EQ(seen->recordings, 2);
  EXPECT_EQ(seen->live, 1) << "the old graph is freed";
}

TEST(ReplayedFunction, TheRecorderSeesWhatAGraphWouldFreeze) {
  const auto run = [](const ReplayedFunction::Function& function) -> std::string {
    ReplayedFunction replayed(make_checked_recorder(counts()), function);
    try {
      for (int i = 0; i < 6; ++i) replayed({number(i)});
    } catch (const Error& error) {
      return error.text().what;
    }
    return "";
  };
  double step = 0;
  EXPECT_THAT(run([&](const GraphTensors& in) { return GraphTensors{in[0] * ++step}; }), HasSubstr("would not do"));
  EXPECT_THAT(run([](const GraphTensors& in) { return GraphTensors{in[0] * in[0].item<double>()}; }),
              HasSubstr("reads a tensor's value"));
  const std::vector<at::Tensor> batches = at::full({6}, 1.0, at::kDouble).unbind();
  size_t next = 0;
  EXPECT_THAT(run([&](const GraphTensors& in) { return GraphTensors{in[0] + batches[next++]}; }),
              HasSubstr("would not do"));
}

// The replay takes none of the memory that the recording took and gave back: a graph owns it for its lifetime, and the
// allocator sees nothing.
TEST(ReplayedFunction, AReplayCountsTheMemoryOfItsRecording) {
  install_booking_allocator();
  const auto book = std::make_shared<MemoryBook>();
  set_thread_memory_book(book);
  bool takes = true;
  ReplayedFunction function(make_checked_recorder(counts()), [&](const GraphTensors& in) {
    if (takes) c10::GetAllocator(c10::kCPU)->allocate(1 << 20);
    return GraphTensors{in[0] + 1};
  });
  for (int i = 0; i < ReplayedFunction::kWarmUps + 1; ++i) function({number(i)});
  const int64_t recorded = book->peak_bytes();
  EXPECT_GE(recorded, 1 << 20);
  takes = false;
  book->reset_peaks();
  function({number(0)});
  EXPECT_NEAR(static_cast<double>(book->peak_bytes()), static_cast<double>(recorded), 1024);
  set_thread_memory_book(nullptr);
}

// Four steps of three microbatches on each of two ranks, but for what the row says.
struct Row {
  const char* name;
  void (*change)(TrainConfig&);
};
const Row kRows[] = {
    {"fp64, dp 2, 3 microbatches", [](TrainConfig&) {}},
    {"dropout, recompute",
     [](TrainConfig& c) {
       c.model.dropout = 0.2;
       c.model.attention_dropout = 0.1;
       c.recompute_granularity = "full";
     }},
    {"tp 2, sequence parallelism, dropout",
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .tp = 2};
       c.sequence_parallel = true;
       c.model.dropout = 0.2;
       c.model.attention_dropout = 0.1;
     }},
    {"tp 2, tied, bf16",
     [](TrainConfig& c) {
       c.parallel.tp = 2;
       c.num_microbatches = 3;
       c.params_dtype = "fp32";
       c.bf16 = true;
       c.model.tie_embeddings = true;
       c.zero_stage = 1;
     }},
    {"clipped heads, recompute",
     [](TrainConfig& c) {
       c.qk_clip = true;
       c.qk_clip_threshold = 0.5;
       c.recompute_granularity = "full";
     }},
    {"pairwise", [](TrainConfig& c) { c.accumulation = Accumulation::kPairwise; }},
    {"bf16, recompute",
     [](TrainConfig& c) {
       c.params_dtype = "fp32";
       c.bf16 = true;
       c.recompute_granularity = "full";
     }},
    {"fp16, a growing loss scale",
     [](TrainConfig& c) {
       c.params_dtype = "fp32";
       c.precision.fp16 = true;
       c.precision.loss_scale_window = 1;
     }},
    {"one microbatch, clipped",
     [](TrainConfig& c) {
       c.num_microbatches = 1;
       c.train_iters = 6;
       c.clip_grad = 0.1;
     }},
    // No exchange and no sum: gradients stay in the graph's memory, where clipping and the optimizer read them.
    {"one rank, one microbatch, clipped",
     [](TrainConfig& c) {
       c.parallel.world = 1;
       c.num_microbatches = 1;
       c.train_iters = 6;
       c.clip_grad = 0.1;
     }},
    {"ZeRO 1", [](TrainConfig& c) { c.zero_stage = 1; }},
    {"ZeRO 2, tied",
     [](TrainConfig& c) {
       c.zero_stage = 2;
       c.model.tie_embeddings = true;
     }},
};

TrainConfig config_of(const Row& row) {
  TrainConfig c = small_config();
  c.backend = "cuda";
  c.parallel = {.world = 2};
  c.model.num_layers = 2;
  c.global_batch_size = 6;
  c.num_microbatches = 3;
  c.train_iters = 4;
  c.trace = false;
  row.change(c);
  return c;
}

TEST(ReplayedPass, GivesTheBitsOfPassesThatAreNotRecorded) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    TrainConfig config = config_of(row);
    const auto seen = counts();
    const auto make_world = [&](int size) { return with_checked_recorder(make_test_world(size), seen); };
    const TrainingRecord want = record_training(config, {.make_world = make_world});
    EXPECT_EQ(seen->warm_ups, 0);
    config.cuda_graph = true;
    const TrainingRecord got = record_training(config, {.make_world = make_world});
    expect_same_training(got, want, kSameBits);
    const int64_t passes = config.train_iters * config.num_microbatches;
    EXPECT_EQ(seen->recordings, config.parallel.world) << "one a rank";
    EXPECT_EQ(seen->replays, config.parallel.world * (passes - ReplayedFunction::kWarmUps));
    EXPECT_EQ(seen->live, 0);
  }
}

// Operands rounded by the steps of a GPU: amaxes of past steps are read, and those of this one kept, where the
// recording found them. Statistics are taken of steps that are not replayed.
TEST(ReplayedPass, QuantizesAsAPassThatIsNotRecorded) {
  const StepsOfAGpu steps;
  for (const auto& [recipe, tp] :
       {std::pair{"fp8_delayed", 1}, std::pair{"fp8_delayed", 2}, std::pair{"fp8_current", 2},
        std::pair{"deepseek_v3", 1}, std::pair{"mxfp8", 1}, std::pair{"nvfp4", 2}, std::pair{"mxfp4", 1}}) {
    SCOPED_TRACE(std::string(recipe) + " tp " + std::to_string(tp));
    TrainConfig config = config_of(kRows[0]);
    config.params_dtype = "fp32";
    config.precision.recipe = recipe;
    config.model.hidden_size = config.model.ffn_hidden_size = 64;
    if (!std::string(recipe).starts_with("fp8_")) config.precision.block_size = 16;
    config.parallel.tp = tp;
    config.trace = true;
    config.trace_level = "action";
    config.precision.stats_interval = 4;  // of steps 0, 1, 2 and 4 of eight
    config.train_iters = 8;
    const auto seen = counts();
    const auto make_world = [&](int size) { return with_checked_recorder(make_test_world(size), seen); };
    const TrainingRecord want = record_training(config, {.make_world = make_world});
    config.cuda_graph = true;
    expect_same_training(record_training(config, {.make_world = make_world}), want, kSameBits);
    EXPECT_EQ(seen->recordings, config.parallel.world);
    EXPECT_EQ(seen->replays, config.parallel.world * (4 * 3 - ReplayedFunction::kWarmUps));
  }
}

// A rank whose modules are watched runs its passes without a graph, kernel by kernel.
TEST(ReplayedPass, StepsThatSomebodyLooksIntoAreNotReplayed) {
  TrainConfig config = config_of(kRows[0]);
  config.cuda_graph = true;
  config.trace = true;
  config.trace_level = "module";
  config.trace_step_start = 2;
  config.trace_step_end = 3;
  const auto seen = counts();
  const auto make_world = [&](int size) { return with_checked_recorder(make_test_world(size), seen); };
  record_training(config, {.make_world = make_world});
  EXPECT_EQ(seen->warm_ups + seen->replays, 2 * 3 * (config.train_iters - 1));
}

TEST(ReplayedPass, IsOneSpanOfTheTimeline) {
  TrainConfig config = config_of(kRows[0]);
  config.cuda_graph = true;
  config.trace = true;
  config.trace_level = "action";
  const auto seen = counts();
  const auto make_world = [&](int size) { return with_checked_recorder(make_test_world(size), seen); };
  const TrainingRecord record = record_training(config, {.make_world = make_world});
  ASSERT_EQ(record.traces.size(), 2u);
  for (const RankTrace& trace : record.traces) {
    std::vector<std::pair<int, int>> passes, want;
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kCompute) continue;
      EXPECT_EQ(trace.names[event.name], "graph");
      EXPECT_LT(event.virtual_begin_ns, event.virtual_end_ns);
      passes.emplace_back(event.step, event.microbatch);
    }
    for (int step = 0; step < config.train_iters; ++step)
      for (int microbatch = 0; microbatch < 3; ++microbatch) want.emplace_back(step, microbatch);
    EXPECT_EQ(passes, want);
  }
}

}  // namespace
}  // namespace ranklab
