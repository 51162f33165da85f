// Differences that rounding alone decides are not reported, and only those: how AdamW moves a weight without a
// gradient, and the expert of a token whose router is near a tie.
#include <gtest/gtest.h>

#include <cmath>

#include "core/config/train_config.h"
#include "core/parity/compare/compare.h"
#include "core/parity/rounding/adamw_apart.h"
#include "core/parity/rounding/routing_flips.h"
#include "core/sim/aten.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

TrainConfig quantized_config() {
  TrainConfig c = small_config();
  c.params_dtype = "bf16";
  c.model.moe = {.num_experts = 3, .topk = 1};
  return c;
}

ParityRecord quantized_record() {
  ParityRecord record;
  record.type = at::kBFloat16;
  record.plan = std::make_shared<const RunPlan>(resolve(quantized_config()));
  return record;
}

void keep(ParityRecord& record, const TensorKey& key, const at::Tensor& values) {
  record.tensors[key] = {{0, 0, whole_slice(values.sizes().vec()), values.flatten().contiguous()}};
}

std::string first_wrong(const ParityRecord& got, const ParityReference& reference) {
  const ParityComparison result = compare(got, reference);
  return result.first_wrong() == nullptr ? "" : result.first_wrong()->key.text();
}

// The first update of 16 weights from 0 by gradients of 1, but for one of them; `steps`: in learning rates.
ParityRecord updated(double gradient, double steps) {
  ParityRecord record = quantized_record();
  const TrainConfig& c = record.plan->config;
  at::Tensor gradients = at::ones({16}, at::kDouble), weights = at::full({16}, -c.lr, at::kDouble);
  gradients[3] = gradient;
  weights[3] = -c.lr * steps;
  keep(record, {0, ParityPhase::kUpdate, "w", "exp_avg"}, gradients * (1 - c.adam_beta1));
  keep(record, {0, ParityPhase::kUpdate, "w", "exp_avg_sq"}, gradients.square() * (1 - c.adam_beta2));
  keep(record, {0, ParityPhase::kUpdate, "w", "updated weight"}, weights);
  return record;
}

TEST(Rounding, AWeightMayMoveAsFarAsItsMomentsSay) {
  constexpr double kHalf = 0.5 * 0x1p7;  // epsilons
  // Of moments half of their size is allowed, of the weight next to nothing.
  ParityReference reference(updated(0.4, 1), {updated(0.2, 1)}, 0.5 * 16, 0.1);
  ASSERT_GT(reference.tolerance({0, ParityPhase::kUpdate, "w", "exp_avg"}), 0.7 * kHalf);
  struct Row {
    double gradient, steps;
    const char* wrong;
  };
  for (const Row& row : {Row{0.4, 1, ""},
                         {-0.4, -1, ""},
                         {-0.8, -1, ""},
                         {0.01, 1, ""},
                         // Not as the moment says, and farther than an update goes.
                         {0.4, -1, "w updated weight"},
                         {-0.4, -2, "w updated weight"},
                         {0.1, 0, "w updated weight"},
                         // A moment that is itself too far.
                         {-2, -1, "w exp_avg"}})
    EXPECT_EQ(first_wrong(updated(row.gradient, row.steps), reference), row.wrong) << row.gradient << " " << row.steps;
}

// Elements whose gradients vanish beside epsilon do not move at all, and those of no gradient have none.
TEST(Rounding, AdamWsStepsAreApartByTheirDirections) {
  TrainConfig c = quantized_config();
  c.lr = 1e-3;
  c.lr_decay = LrDecay::kConstant;
  const auto moments = [&](std::vector<double> gradients) {
    const at::Tensor g = at::tensor(gradients, at::kDouble);
    return AdamMoments{g * (1 - c.adam_beta1), g.square() * (1 - c.adam_beta2)};
  };
  const at::Tensor apart = adamw_apart(moments({1, 1, -3, 1e-12, 0, NAN}), moments({1, -1, -5, -1e-12, 2, 1}), c, 0);
  const std::vector<double> want = {0, 2e-3, 0, 0, 1e-3, 0};
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(apart[static_cast<int64_t>(i)].item<double>(), want[i], 1e-6) << i;
  // fp16 keeps a square of 1e-9 as 0, which could be that of a step of any size.
  AdamMoments tiny = moments({1e-4}), same = tiny;
  for (AdamMoments* one : {&tiny, &same}) one->square_type = at::kHalf;
  EXPECT_GT(adamw_apart(tiny, same, c, 0).item<double>(), 1e-3);
  EXPECT_LT(adamw_apart(moments({1e-4}), moments({1e-4}), c, 0).item<double>(), 1e-9);
}

// Four tokens of three experts. The third token is between the second expert and the third, by `lean`; `gradient` is
// that of all weights of the third expert, which nobody else chooses.
ParityRecord routed(double lean, double gradient) {
  ParityRecord record = quantized_record();
  const std::string layer = "layers.0.mlp";
  keep(record, {0, ParityPhase::kForward, layer + ".router", "input"},
       at::tensor({1., 0., 0., 0., 1., 0., 0., 1., 1 + lean, 1., 0., 0.}, at::kDouble).view({4, 1, 3}));
  keep(record, {0, ParityPhase::kWeights, layer + ".router.weight", "weight"}, at::eye(3, at::kDouble));
  for (const auto& [expert, value] : {std::pair{"0", 1.}, {"1", 1.}, {"2", gradient}})
    keep(record, {0, ParityPhase::kBackward, layer + ".experts." + expert + ".up.weight", "grad"},
         at::full({8}, value, at::kDouble));
  return record;
}

TEST(Rounding, AnExpertMayGetATokenThatWasNearATie) {
  constexpr double kLean = 0x1p-7;
  const ParityReference reference(routed(-kLean, 0), {});
  const std::string wrong = "layers.0.mlp.experts.2.up.weight grad";
  EXPECT_EQ(first_wrong(routed(-kLean, 0), reference), "");
  EXPECT_EQ(first_wrong(routed(kLean, 1), reference), "") << "as large a gradient as another expert's";
  EXPECT_EQ(first_wrong(routed(kLean, 8), reference), wrong) << "more than a token brings";
  EXPECT_EQ(first_wrong(routed(-kLean, 1), reference), wrong) << "no token went there";
  EXPECT_LT(compare(routed(-kLean, 1), reference).first_wrong()->worst.eps, 200) << "told in the others' size";
  const auto flips = routing_flips(routed(kLean, 1), routed(-kLean, 0), 0, "layers.0.mlp");
  ASSERT_TRUE(flips);
  EXPECT_EQ(flips->tokens, (std::vector<int64_t>{2, 2, 0}));
  EXPECT_EQ(flips->flipped, (std::vector<int64_t>{0, 1, 1}));
}

// A weight of three rows on two ranks, of which the second has one row of padding.
ParityRecord padded(double padding) {
  ParityRecord record = quantized_record();
  record.mesh = ParityMesh({"tp 0 of 2", "tp 1 of 2"});
  for (const int rank : {0, 1}) {
    const at::Tensor values = at::ones({4}, at::kDouble);
    if (rank == 1) values.slice(0, 2).fill_(padding);
    record.tensors[{0, ParityPhase::kBackward, "head.weight", "grad"}].push_back(
        {rank, 0, {.shape = {3, 2}, .positions = {{2 * rank, 2 * rank + 1}, {}}}, values});
  }
  return record;
}

TEST(Rounding, MakesNothingOfPadding) {
  const ParityReference reference(padded(0), {});
  EXPECT_EQ(first_wrong(padded(0), reference), "");
  const ParityComparison result = compare(padded(1e-3), reference);
  ASSERT_NE(result.first_wrong(), nullptr) << "far less than what is allowed of the others";
  EXPECT_EQ(result.first_wrong()->wrong_ranks, std::vector<int>{1});
  EXPECT_NE(result.first_wrong()->broken.find("padding"), std::string::npos);
  EXPECT_EQ(coordinates_text(result.first_wrong()->worst.place, {3, 2}), "padding");
}

// A gradient and the norm of all, each `eps` too large.
ParityRecord off_by(c10::ScalarType type, double eps) {
  ParityRecord record;
  record.type = type;
  const double factor = 1 + eps * (type == at::kFloat ? 0x1p-23 : 0x1p-7);
  keep(record, {0, ParityPhase::kBackward, "w", "grad"}, at::ones({16}, at::kDouble) * factor);
  keep(record, {0, ParityPhase::kNorm, "grad_norm", ""}, at::full({1}, 4 * factor, at::kDouble));
  return record;
}

TEST(Rounding, AveragesOutInSumsOfEverything) {
  EXPECT_EQ(first_wrong(off_by(at::kFloat, 15), ParityReference(off_by(at::kFloat, 0), {})), "");
  const ParityReference reference(off_by(at::kBFloat16, 0), {});
  EXPECT_EQ(first_wrong(off_by(at::kBFloat16, 0.2), reference), "");
  EXPECT_EQ(first_wrong(off_by(at::kBFloat16, 0.3), reference), "grad_norm");
  EXPECT_EQ(first_wrong(off_by(at::kBFloat16, 17), reference), "w grad");
}

// Gradients of 3 and 4 as rounding may leave them, and the norm that the run reports.
ParityRecord clipped(double factor, double told) {
  ParityRecord record;
  record.type = at::kBFloat16;
  for (const auto& [name, value] : {std::pair{"v", 3.}, {"w", 4.}})
    keep(record, {0, ParityPhase::kBackward, name, "grad"}, at::full({1}, value * factor, at::kDouble));
  keep(record, {0, ParityPhase::kNorm, "grad_norm", ""}, at::full({1}, told, at::kDouble));
  return record;
}

TEST(Rounding, MovesTheNormOnlyWithItsGradients) {
  // Half of the norm is allowed.
  const ParityReference reference(clipped(1, 5), {clipped(1.0625, 5.3125)});
  EXPECT_EQ(first_wrong(clipped(1.02, 5.1), reference), "");
  EXPECT_EQ(first_wrong(clipped(1, 5.001), reference), "grad_norm");
  EXPECT_EQ(first_wrong(clipped(1, 4), reference), "grad_norm") << "without one of them";
  // Files may have some of the gradients.
  const auto without_one = [](ParityRecord record) {
    record.tensors.erase({0, ParityPhase::kBackward, "v", "grad"});
    return record;
  };
  EXPECT_EQ(first_wrong(without_one(clipped(1.02, 5.1)),
                        ParityReference(without_one(clipped(1, 5)), {clipped(1.0625, 5.3125)})),
            "");
  EXPECT_EQ(first_wrong(without_one(clipped(1.02, 5.1)), reference), "") << "what is not there says nothing";
}

// 16 elements of 1, each moved by `apart` one way or the other.
ParityRecord moved(double apart) {
  ParityRecord record;
  record.type = at::kBFloat16;
  const at::Tensor values = at::ones({16}, at::kDouble);
  values.slice(0, 0, 8).add_(apart);
  values.slice(0, 8).sub_(apart);
  keep(record, {0, ParityPhase::kBackward, "w", "grad"}, values);
  return record;
}

TEST(Rounding, LeavesATensorOfZerosToBeFound) {
  const auto allowed = [](double apart) {
    const ParityReference reference(moved(0), {moved(apart)});
    return reference.tolerance_together(reference.keys().front()) * 0x1p-7;
  };
  EXPECT_NEAR(allowed(0.1), 0.8, 1e-9);
  EXPECT_NEAR(allowed(0.2), 0.9, 1e-9);
  EXPECT_NEAR(allowed(0.7), 1.05, 1e-9);
  EXPECT_NEAR(allowed(1.5), 12, 1e-9) << "nothing of it is known";
  const ParityReference reference(moved(0), {moved(0.5)});
  const auto halves = [](double first, double second) {
    ParityRecord record;
    record.type = at::kBFloat16;
    for (const int rank : {0, 1})
      record.tensors[{0, ParityPhase::kBackward, "w", "grad"}].push_back(
          {rank,
           0,
           {.shape = {16}, .positions = {{}}, .begin = 8L * rank, .end = 8L * rank + 8},
           at::full({8}, rank == 0 ? first : second, at::kDouble)});
    return record;
  };
  EXPECT_EQ(first_wrong(halves(0, 0), reference), "w grad");
  EXPECT_EQ(first_wrong(halves(1, 0), reference), "") << "one piece says less";
}

TEST(Rounding, LetsAnOverflowOfScaledGradientsSpreadAsKernelsDo) {
  const auto overflowed = [](std::initializer_list<int64_t> places, bool scaled) {
    ParityRecord record = moved(0);
    for (const int64_t place : places) record.tensors.begin()->second.front().value[place] = NAN;
    if (scaled) keep(record, {0, ParityPhase::kNorm, "loss_scale", ""}, at::ones({1}, at::kDouble));
    return record;
  };
  EXPECT_EQ(first_wrong(overflowed({1}, true), ParityReference(overflowed({1, 2}, true), {})), "");
  EXPECT_EQ(first_wrong(overflowed({1}, false), ParityReference(overflowed({1, 2}, false), {})), "w grad");
  EXPECT_EQ(first_wrong(overflowed({1}, true), ParityReference(overflowed({}, true), {})), "w grad");
}

}  // namespace
}  // namespace ranklab
