// Small training runs of which tests of numeric types compare losses and norms.
#pragma once
#include <gtest/gtest.h>

#include <utility>

#include "tests/support/expect_training.h"
#include "tests/support/small_config.h"

namespace ranklab {

inline TrainConfig small_run(int world, int tp) {
  TrainConfig c = small_config();
  c.parallel = {.world = world, .tp = tp};
  c.model.ffn_hidden_size = 64;
  c.params_dtype = "fp32";
  c.train_iters = 12;
  c.lr = 3e-3;
  c.clip_grad = 1;
  c.adam_eps = 1e-8;
  c.ddp_bucket_bytes = 0;
  c.global_batch_size = 16;
  c.trace = false;
  return c;
}

// Two curves of which the first one falls.
inline void expect_near(const TrainingRecord& got, const TrainingRecord& want, double loss, double norm) {
  expect_curves_near(got, want, loss, norm);
  EXPECT_LT(got.losses().back(), 0.85 * got.losses().front());
}

// `config` on one rank with 4 microbatches, and cut into 2 and 4 stages.
inline void expect_pipelines_are_one_rank(TrainConfig config) {
  config.num_microbatches = 4;
  const TrainingRecord whole = record_training(config);
  for (const int stages : {2, 4}) {
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      config.parallel = {.world = stages, .tp = 1, .pp = stages};
      config.pipeline_schedule = schedule;
      const TrainingRecord cut = record_training(config);
      EXPECT_EQ(cut.losses(), whole.losses()) << schedule << ", " << stages;
      expect_curves_near(cut, whole, 0, 1e-12);
    }
  }
}

inline void expect_layouts_near_one_rank(TrainConfig (*config_of)(int world, int tp), double loss_tolerance,
                                         double norm_tolerance) {
  const TrainingRecord whole = record_training(config_of(1, 1));
  for (const auto& [world, tp] : {std::pair{8, 1}, std::pair{2, 2}, std::pair{8, 4}}) {
    TrainConfig other = config_of(world, tp);
    other.zero_stage = tp == 4 ? 3 : 0;
    expect_near(record_training(other), whole, loss_tolerance, norm_tolerance);
  }
}

}  // namespace ranklab
