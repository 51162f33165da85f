// --tp-comm-overlap: products in pieces of the positions, whose collectives overlap with other pieces. Compared with
// the run without it (fp64), in which each collective is one call.
#include <gtest/gtest.h>

#include "core/trace/trace_validate.h"
#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

void expect_same_with_overlap(TrainConfig config, const Tolerance& tolerance = kRounding) {
  const TrainingRecord plain = record_training(config);
  config.tp_comm_overlap = true;
  TrainingRecord overlapped = record_training(config);
  expect_same_training(overlapped, plain, tolerance);
  TraceFile file;
  file.clock = TraceClock::kVirtual;
  file.world_size = config.parallel.world;
  file.ranks = std::move(overlapped.traces);
  EXPECT_EQ(validate_calls(file), std::vector<std::string>{});
}

struct Case {
  const char* name;
  void (*change)(TrainConfig&);
};

const Case kCases[] = {
    {"tp 2", [](TrainConfig& c) { c.parallel = {.world = 2, .tp = 2}; }},
    {"tp 4, dp 2", [](TrainConfig& c) { c.parallel = {.world = 8, .tp = 4}; }},
    {"3 positions of a rank",  // fewer than there are pieces
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .tp = 4};
       c.model.seq_length = 12;
     }},
    {"1 position of a rank",
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .tp = 4};
       c.model.seq_length = 4;
     }},
    {"10 positions of a rank, 2 sequences",  // uneven pieces
     [](TrainConfig& c) {
       c.parallel = {.world = 2, .tp = 2};
       c.model.seq_length = 20;
       c.micro_batch_size = 2;
     }},
    {"biases, tied embedding",
     [](TrainConfig& c) {
       c.parallel = {.world = 2, .tp = 2};
       c.model.add_bias = c.model.tie_embeddings = true;
     }},
    {"tp 2, cp 2", [](TrainConfig& c) { c.parallel = {.world = 4, .tp = 2, .cp = 2}; }},
    {"zb-h1",
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .tp = 2, .pp = 2};
       c.pipeline_schedule = "zb-h1";
       c.num_microbatches = 4;
     }},
    {"recompute",
     [](TrainConfig& c) {
       c.parallel = {.world = 2, .tp = 2};
       c.recompute_granularity = "full";
     }},
    {"ZeRO 3",
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .tp = 2};
       c.zero_stage = 3;
     }},
    {"experts",
     [](TrainConfig& c) {
       variant_named("deepseek_experts").change(c.model);
       c.parallel = {.world = 4, .tp = 2, .ep = 4};
       c.overlap_moe = c.overlap_shared_experts = true;
       c.num_microbatches = 2;
     }},
    {"latent attention, experts, multi-token prediction",
     [](TrainConfig& c) {
       variant_named("deepseek").change(c.model);
       c.model.mtp_num_layers = 1;
       c.parallel = {.world = 2, .tp = 2};
     }},
    {"linear attention",
     [](TrainConfig& c) {
       variant_named("delta_net").change(c.model);
       c.parallel = {.world = 2, .tp = 2};
     }},
};

TEST(TensorOverlap, SameNumbers) {
  for (const Case& row : kCases) {
    SCOPED_TRACE(row.name);
    TrainConfig config = small_config();
    row.change(config);
    expect_same_with_overlap(config);
  }
}

// A sum over ranks is rounded as in one collective.
TEST(TensorOverlap, NearlyTheSameIn16Bits) {
  TrainConfig config = small_config();
  config.params_dtype = "fp32";
  config.bf16 = true;
  config.parallel = {.world = 4, .tp = 4};
  const TrainingRecord plain = record_training(config);
  config.tp_comm_overlap = true;
  expect_curves_near(record_training(config), plain, 1e-3, 1e-2);
}

// The scale of a tensor is not that of its pieces, so quantized products stay whole.
TEST(TensorOverlap, QuantizedProductsStayWhole) {
  TrainConfig config = small_config();
  config.model.hidden_size = 128;
  config.model.ffn_hidden_size = 256;
  config.params_dtype = "fp32";
  config.precision.recipe = "fp8_current";
  config.parallel = {.world = 2, .tp = 2};
  const TrainingRecord plain = record_training(config);
  config.tp_comm_overlap = true;
  expect_curves_near(record_training(config), plain, 1e-5, 1e-4);
}

}  // namespace
}  // namespace ranklab
