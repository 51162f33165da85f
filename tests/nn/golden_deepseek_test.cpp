// YaRN and the router of DeepSeek-V3 against values that plain torch computed, which agree with the transformers
// package (tests/golden/deepseek.py).
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "core/nn/router.h"
#include "core/nn/yarn.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::relative_error;

const YarnConfig kV3{.scaling_factor = 40};
const YarnConfig kTiny{.scaling_factor = 3, .original_seq_length = 16, .beta_slow = 0.2};

TEST(GoldenYarn, FrequenciesAndTemperature) {
  const golden::Golden file = golden::load("yarn.txt");
  EXPECT_LT(relative_error(yarn_frequencies(64, 10000.0, kV3), file["v3.frequencies"]), 1e-12);
  EXPECT_LT(relative_error(yarn_frequencies(4, 50.0, kTiny), file["tiny.frequencies"]), 1e-12);
  EXPECT_NEAR(yarn_mscale(40, 1.0), file["v3.mscale"].item<double>(), 1e-12);
  EXPECT_NEAR(yarn_mscale(3, 1.0), file["tiny.mscale"].item<double>(), 1e-12);
  // The published sizes: 192 elements of a query, mscale 1.3689.
  EXPECT_NEAR(yarn_softmax_scale(192, kV3), 1.8738542 / std::sqrt(192.0), 1e-7);
  EXPECT_DOUBLE_EQ(yarn_softmax_scale(192, {}), 1 / std::sqrt(192.0));
}

TEST(GoldenYarn, FastPairsKeepTheirFrequencyAndSlowOnesAreStretched) {
  const at::Tensor plain = yarn_frequencies(64, 10000.0, {}), stretched = yarn_frequencies(64, 10000.0, kV3);
  const at::Tensor ratio = plain / stretched;
  // Pairs 0 to 10 turn more than 32 times in 4096 positions, those from 23 on less than once.
  EXPECT_TRUE(at::equal(ratio.narrow(0, 0, 11), at::ones({11}, at::kDouble)));
  EXPECT_LT(relative_error(ratio.narrow(0, 23, 9), at::full({9}, 40.0, at::kDouble)), 1e-12);
  EXPECT_TRUE(ratio.narrow(0, 11, 12).gt(1).all().item<bool>());
  EXPECT_TRUE(ratio.narrow(0, 11, 12).lt(40).all().item<bool>());
}

TEST(GoldenYarn, TablesAreTheAngles) {
  const RopeTable table = make_yarn_table(6, {.rotary_dim = 4, .theta = 50.0}, kTiny, at::kDouble);
  const at::Tensor frequencies = golden::load("yarn.txt")["tiny.frequencies"];
  EXPECT_LT(relative_error(table.cos_SD[5], (frequencies * 5).cos()), 1e-12);
  EXPECT_LT(relative_error(table.sin_SD[5], (frequencies * 5).sin()), 1e-12);
  YarnConfig hotter = kTiny;
  hotter.mscale = 2;  // ... times 1.22 / 1.11
  const RopeTable scaled = make_yarn_table(6, {.rotary_dim = 4, .theta = 50.0}, hotter, at::kDouble);
  EXPECT_LT(relative_error(scaled.cos_SD, table.cos_SD * ((1 + 0.2 * std::log(3.0)) / (1 + 0.1 * std::log(3.0)))),
            1e-12);
}

TEST(GoldenRouter, ChoosesAndWeighsAsDeepSeekV3) {
  const golden::Golden file = golden::load("router.txt");
  const MoeConfig config{.num_experts = 16,
                         .topk = 3,
                         .score = RouterScore::kSigmoid,
                         .num_groups = 4,
                         .group_topk = 2,
                         .scaling_factor = 2.5};
  const at::Tensor logits = file["logits"].clone().requires_grad_(true);
  const ExpertChoice choice = choose_experts(logits, file["bias"], config);
  const at::Tensor dense = at::zeros({12, 16}, at::kDouble).scatter(1, choice.experts_TK, choice.weights_TK);
  EXPECT_TRUE(at::equal(dense.ne(0), file["weights"].ne(0)));
  EXPECT_LT(relative_error(dense, file["weights"]), 1e-12);
  torch::autograd::backward({dense}, {golden::wave({12, 16}, 0.9)});
  EXPECT_LT(relative_error(logits.grad(), file["dlogits"]), 1e-11);
}

}  // namespace
}  // namespace ranklab
