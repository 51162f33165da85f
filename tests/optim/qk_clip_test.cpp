// QK-clip against the paper's formula, gamma = threshold / S where S is above it, row by row.
#include "core/optim/qk_clip.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/sim/aten.h"

namespace ranklab {
namespace {

TEST(QkClip, FactorsAreTheThresholdOverWhatIsAboveIt) {
  const double none = -std::numeric_limits<double>::infinity();
  const at::Tensor largest = at::tensor({50.0, 100.0, 400.0, -3.0, none, 125.0}, at::kDouble).view({1, 6});
  const at::Tensor want = at::tensor({1.0, 1.0, 0.25, 1.0, 1.0, 0.8}, at::kDouble).view({1, 6});
  EXPECT_TRUE(at::equal(qk_clip_gammas(largest, {}), want)) << "exactly 1 where nothing is clipped";
  for (const double threshold : {0.3, 0.7, 49.0})
    EXPECT_EQ(qk_clip_gammas(at::full({1, 1}, threshold), {.threshold = threshold}).item<double>(), 1);
}

TEST(QkClip, HeadsThatShareAKeyAreClippedTogether) {
  const at::Tensor largest = at::tensor({50.0, 400.0, 30.0, 99.0, 1e3, 500.0, 1.0, 2.0}, at::kDouble).view({2, 4});
  const at::Tensor want = at::tensor({0.25, 0.25, 1.0, 1.0, 0.1, 0.1, 1.0, 1.0}, at::kDouble).view({2, 4});
  EXPECT_TRUE(at::allclose(qk_clip_gammas(largest, {.together = 2}), want, 1e-15, 0));
}

TEST(QkClip, LeavesFixedLayersAlone) {
  const at::Tensor gammas = qk_clip_gammas(at::full({3, 2}, 200.0, at::kDouble), {.fixed_layers = {0, 2}});
  EXPECT_TRUE(at::equal(gammas, at::tensor({1.0, 1.0, 0.5, 0.5, 1.0, 1.0}, at::kDouble).view({3, 2})));
}

// A norm that is stored minus 1: 1 + w is scaled, and a factor of 1 changes no bit.
TEST(QkClip, ScalesWhatIsStoredMinusAnOffset) {
  Parameter parameter;
  const at::Tensor before = at::tensor({0.3, -0.1, 0.3, -0.1}, at::kDouble);
  parameter.data = before.clone();
  const QkClip clip({{.parameter = &parameter, .master = {}, .offset = 1, .rows = {{0, 1}, {0, 1}, {1, 1}, {1, 1}}}},
                    {});
  clip.clip(at::tensor({400.0, 7.0}, at::kDouble).view({1, 2}));
  const at::Tensor want = at::cat({(before.narrow(0, 0, 2) + 1) * 0.25 - 1, before.narrow(0, 2, 2)});
  EXPECT_TRUE(at::allclose(parameter.data, want, 0, 1e-15));
  EXPECT_TRUE(at::equal(parameter.data.narrow(0, 2, 2), before.narrow(0, 2, 2)));
}

// A matrix of 5 rows and 3 columns, cut at every two places as a ZeRO stage cuts it: each piece scales what it has. Its
// master is scaled, and the parameter is the rounded master.
TEST(QkClip, PiecesScaleTheRowsThatTheyHave) {
  const at::Tensor largest = at::tensor({400.0, 7.0, 100.0 / 0.16}, at::kDouble).view({1, 3});
  const std::vector<QkClip::Row> rows = {{0, 0.5}, {1, 0.5}, {2, 1}, {2, 0.25}, {0, 0}};
  const double factors[] = {0.5, 1, 0.16, std::sqrt(0.4), 1};
  const at::Tensor whole = at::arange(1, 16, at::kDouble) / 7;
  for (int64_t begin = 0; begin < 15; ++begin) {
    for (int64_t end = begin + 1; end <= 15; ++end) {
      Parameter parameter;
      parameter.data = whole.narrow(0, begin, end - begin).clone();
      const auto first = rows.begin() + begin / 3, last = rows.begin() + (end - 1) / 3 + 1;
      const QkClip clip(
          {{.parameter = &parameter, .master = {}, .begin = begin % 3, .row_width = 3, .rows = {first, last}}}, {});
      EXPECT_EQ(clip.clip(largest).item<int64_t>(), 2);
      for (int64_t i = begin; i < end; ++i)
        EXPECT_DOUBLE_EQ(parameter.data[i - begin].item<double>(), whole[i].item<double>() * factors[i / 3])
            << begin << " to " << end << " at " << i;
    }
  }
}

TEST(QkClip, ScalesMastersAndRoundsThemIntoParameters) {
  Parameter parameter;
  const at::Tensor master = at::tensor({1.01f, 2.02f, 3.03f, 4.04f}).view({2, 2});
  parameter.data = master.to(at::kBFloat16);
  const QkClip clip({{.parameter = &parameter, .master = master, .begin = 0, .row_width = 2, .rows = {{0, 1}, {1, 1}}}},
                    {});
  clip.clip(at::tensor({50.0f, 300.0f}).view({1, 2}));
  const float gamma = 100.0f / 300.0f;
  EXPECT_TRUE(at::equal(master, at::tensor({1.01f, 2.02f, 3.03f * gamma, 4.04f * gamma}).view({2, 2})));
  EXPECT_TRUE(at::equal(parameter.data, master.to(at::kBFloat16)));
}

}  // namespace
}  // namespace ranklab
