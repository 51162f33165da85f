// Drawings: on both grounds; a histogram's columns and a roofline's points where their numbers are.
#include "viz/model/svg/drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "core/base/numbers/value_histogram.h"
#include "viz/model/svg/front_drawing.h"
#include "viz/model/svg/model_drawing.h"

namespace ranklab::viz {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Shape& shape_with_text(const Drawing& drawing, const std::string& text) {
  for (const Shape& shape : drawing.shapes())
    if (shape.text.find(text) != std::string::npos) return shape;
  ADD_FAILURE() << "nothing says " << text;
  return drawing.shapes().front();
}

TEST(Drawing, InkAndGroundChangeButNoColourWithAMeaning) {
  Drawing drawing = front_drawing("layouts", {{"--tp 2", 1, 1e9, true}, {"--tp 4", 2, 2e9, false}}, 3e9);
  const std::string light = svg_of(drawing, Ground::kLight), dark = svg_of(drawing, Ground::kDark);
  for (const std::string& svg : {light, dark}) EXPECT_THAT(svg, HasSubstr("#0072b2")) << "of the front";
  EXPECT_THAT(light,
              testing::AllOf(HasSubstr("height=\"100%\" fill=\"#ffffff\""), HasSubstr("fill=\"#333333\">layouts")));
  EXPECT_THAT(dark,
              testing::AllOf(HasSubstr("height=\"100%\" fill=\"#171a1f\""), HasSubstr("fill=\"#dee3ea\">layouts")));
  EXPECT_THAT(dark, Not(testing::AnyOf(HasSubstr("#333333"), HasSubstr("#ffffff"))));
}

TEST(ModelDrawing, AColumnIsAsHighAsTheLogarithmOfItsCount) {
  ModelPicture::Histogram one{.name = "w", .facts = "some", .counts = std::vector<double>(ValueHistogram::kBins)};
  for (const auto& [value, count] : std::map<float, double>{{-0.5F, 10}, {0.25F, 1000}, {0.001F, 100'000}, {0.0F, 7}})
    one.counts[static_cast<size_t>(ValueHistogram::bin(value))] = count;
  const Drawing drawing = model_drawing({.title = "m", .histograms = {one, {"b", "all 0", one.counts, true}}});
  const auto column = [&](const char* count) { return shape_with_text(drawing, std::string(count) + " elements"); };
  const auto high = [&](const char* count) { return column(count).y1 - column(count).y; };
  EXPECT_NEAR(high("100000") - high("1000"), high("1000") - high("10"), 1e-9);
  EXPECT_GT(high("10"), 0);
  // Left to right: -0.5, 0, 0.001, 0.25; as far apart as powers of two are.
  EXPECT_LT(column("10").x, column("7").x);
  EXPECT_NEAR((column("1000").x - column("100000").x) / (column("1000").x1 - column("1000").x), 2 * std::log2(250),
              1.01);
  EXPECT_NO_FATAL_FAILURE(shape_with_text(drawing, "all 0: b"));
}

TEST(RooflineDrawing, PointsLieUnderTheRoofByTheirNumbers) {
  Drawing drawing;
  draw_roofline(drawing,
                {.title = "r",
                 .peak_flops = 1e15,
                 .bytes_per_s = 2e12,
                 .points = {{"knee", 500, 1e15}, {"right", 5000, 1e15}, {"slope", 50, 1e14}, {"low", 500, 1e14}}},
                0, 0, 900);
  const auto middle = [&](const char* name) {
    const Shape& at = shape_with_text(drawing, std::string(name) + ": ");
    return std::pair((at.x + at.x1) / 2, (at.y + at.y1) / 2);
  };
  const auto knee = middle("knee"), right = middle("right"), slope = middle("slope"), low = middle("low");
  EXPECT_NEAR(knee.second, right.second, 1e-9);
  EXPECT_NEAR(slope.second, low.second, 1e-9);
  EXPECT_NEAR(knee.first, low.first, 1e-9);
  EXPECT_NEAR(right.first - knee.first, knee.first - slope.first, 1e-9) << "a decade each";
  // The two lines of the roof meet in the knee, and the first goes through what only memory bounds.
  std::vector<Shape> roof;
  for (const Shape& shape : drawing.shapes())
    if (shape.kind == Shape::Kind::kLine && shape.colour == 0xD55E00FF) roof.push_back(shape);
  ASSERT_EQ(roof.size(), 2u);
  EXPECT_NEAR(roof[0].x1, knee.first, 1e-9);
  EXPECT_NEAR(roof[0].y1, knee.second, 1e-9);
  EXPECT_NEAR((roof[0].y1 - slope.second) / (roof[0].x1 - slope.first),
              (roof[0].y1 - roof[0].y) / (roof[0].x1 - roof[0].x), 1e-9);
}

}  // namespace
}  // namespace ranklab::viz
