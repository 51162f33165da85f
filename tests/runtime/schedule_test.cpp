// The loss is a sum over tokens divided by the global token count: ranks whose batches have fewer targets weigh less,
// and a rank with none still takes part (features.md 4.2: mean-of-means loss).
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

// Sequence s of the global batch has targets only in its first 2 s positions.
class RaggedData : public RankData {
 public:
  RaggedData(int64_t sequences, int64_t length, int64_t first, bool any)
      : sequences_(sequences), length_(length), first_(first), any_(any) {}
  Batch train_batch(int64_t step, int64_t microbatch) override {
    Batch batch{.tokens_BS = at::zeros({sequences_, length_}, at::kLong),
                .targets_BS = at::full({sequences_, length_}, -100, at::kLong)};
    batch.first_sample = first_ + microbatch * sequences_;
    batch.step = step;
    for (int64_t j = 0; j < sequences_; ++j) {
      const int64_t sample = batch.first_sample + j;
      for (int64_t t = 0; t < length_; ++t) {
        batch.tokens_BS[j][t] = (7 * sample + 3 * t + step) % 256;
        if (any_ && t < 2 * sample) batch.targets_BS[j][t] = (5 * sample + t) % 256;
      }
    }
    return batch;
  }
  bool has_validation() const override { return false; }
  Batch validation_batch(int64_t, int64_t) override { return {}; }

 private:
  int64_t sequences_, length_, first_;
  bool any_;
};

class RaggedProvider : public DataProvider {
 public:
  explicit RaggedProvider(bool any) : any_(any) {}
  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    const int64_t first = ctx.coordinate(Axis::kDp) * plan.num_microbatches * plan.micro_batch_size;
    return std::make_unique<RaggedData>(plan.micro_batch_size, plan.config.model.seq_length, first, any_);
  }
  std::string describe() const override { return "ragged"; }

 private:
  bool any_;
};

std::vector<StepMetrics> run(int world, int64_t micro, bool any = true, int pp = 1,
                             const std::string& schedule = "1f1b") {
  TrainConfig config = tiny_config(world, 1);
  config.parallel.pp = pp;
  config.pipeline_schedule = schedule;
  config.params_dtype = "fp64";
  config.micro_batch_size = micro;
  config.optimizer = OptimizerKind::kSgd;  // AdamW would hide a wrong factor
  config.lr = 0.1;
  const RunPlan plan = resolve(config);
  RuntimeComponents parts = default_components(make_thread_world({.size = world}), plan);
  parts.data_provider = std::make_shared<RaggedProvider>(any);
  RuntimeEngine engine(parts, plan);
  const auto hook = std::make_shared<RecordingHook>();
  engine.add_hook(hook);
  engine.fit();
  return hook->steps;
}

TEST(PipelineSchedule, RaggedTargetsWeighByTokenInEveryLayout) {
  const std::vector<StepMetrics> one = run(1, 8);
  EXPECT_EQ(one[0].tokens, 2 + 4 + 6 + 8 + 10 + 12 + 14);
  for (const auto& [world, micro] : {std::pair{8, 1}, std::pair{4, 1}, std::pair{2, 4}, std::pair{1, 1}}) {
    const std::vector<StepMetrics> split = run(world, micro);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(split[i].tokens, one[i].tokens);
      EXPECT_NEAR(split[i].loss, one[i].loss, 1e-12 * one[i].loss)
          << "dp " << world << " micro batch " << micro << " step " << i;
      EXPECT_NEAR(split[i].grad_norm, one[i].grad_norm, 1e-11 * one[i].grad_norm);
    }
  }
}

TEST(PipelineSchedule, RaggedTargetsWeighByTokenThroughAPipeline) {
  const std::vector<StepMetrics> one = run(1, 8);
  for (const auto& [world, micro, schedule] :
       {std::tuple{2, 1, "1f1b"}, std::tuple{4, 1, "zb-h1"}, std::tuple{2, 2, "dualpipe"}}) {
    const std::vector<StepMetrics> split = run(world, micro, true, 2, schedule);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(split[i].tokens, one[i].tokens) << schedule;
      EXPECT_NEAR(split[i].loss, one[i].loss, 1e-12 * one[i].loss) << schedule << " step " << i;
      EXPECT_NEAR(split[i].grad_norm, one[i].grad_norm, 1e-11 * one[i].grad_norm) << schedule << " step " << i;
    }
  }
}

TEST(PipelineSchedule, ABatchWithoutTargetsIsAnError) {
  try {
    run(2, 4, /*any=*/false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no token of the global batch has a target"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace ranklab
