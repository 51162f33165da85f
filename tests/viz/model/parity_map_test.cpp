// The table of a parity result: which rows are one, what is furthest, colours whose order is seen and whose texts can
// be read, and the drawing.
#include "viz/model/parity/parity_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "tests/viz/model/parity_sample.h"
#include "viz/model/parity/parity_file.h"
#include "viz/model/parity/parity_lines.h"
#include "viz/model/parity/parity_svg.h"

namespace ranklab::viz {
namespace {

using samples::parity_map;
using samples::parity_row;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string text_of(const std::vector<ParityLine>& lines) {
  std::string all;
  for (const ParityLine& line : lines)
    all += (line.kind == ParityLine::Kind::kPhase    ? ""
            : line.kind == ParityLine::Kind::kTensor ? "  "
                                                     : "  * ") +
           line.text + "\n";
  return all;
}

TEST(ParityMap, RowsOfALayerAreOneUnitWithinAPhase) {
  std::vector<std::string> units;
  for (const ParityUnit& unit : parity_units(parity_map()))
    units.push_back(unit.name + " " + std::to_string(unit.begin) + "-" + std::to_string(unit.end));
  units.resize(6);
  EXPECT_THAT(units, ElementsAre("layers.0 0-6", "layers.1 6-12", "head 12-13", "head 13-14", "layers.1 14-17",
                                 "layers.0 17-20"));
}

TEST(ParityMap, TheFurthestIsWrongBeforeItIsFar) {
  ParityMap map = parity_map();
  EXPECT_EQ(map.first_wrong(), 15U);
  EXPECT_EQ(count_wrong(map, 0, 20), 1U);
  // Rank 0 of layer 1's backward: 1, 1, 0.2 of 16; rank 1: 3, 1.6e6, 6 of 16.
  EXPECT_THAT(furthest_rows(map, 14, 17), ElementsAre(14U, 15U));
  EXPECT_EQ(furthest_place(map, 14, 17)->rank, 1U);
  map.rows[16].cells[0]->wrong = true;  // copies that differ
  EXPECT_THAT(furthest_rows(map, 14, 17), ElementsAre(16U, 15U));
  EXPECT_THAT(furthest_rows(map, 12, 13), ElementsAre(12U, std::nullopt));
  map.rows[12].cells[0].reset();
  EXPECT_FALSE(furthest_place(map, 12, 13));
}

TEST(ParityMap, AWrongCellSaysHowManyTimesWhatIsAllowed) {
  const auto mark = [](double eps, double allowed, bool narrow = false) {
    ParityRow row = parity_row(0, "forward", "head", "output", 0, eps);
    row.allowed = allowed;
    row.cells[1]->wrong = true;
    return mark_of(row, *row.cells[1], narrow);
  };
  EXPECT_EQ(mark(24, 16), "\u2717 1.5");
  EXPECT_EQ(mark(16 * 99.6, 16), "\u2717 100");
  EXPECT_EQ(mark(16 * 999.7, 16), "\u2717 1e3");
  EXPECT_EQ(mark(16 * 3.7e5, 16), "\u2717 4e5");
  EXPECT_EQ(mark(16 * 3.7e5, 16, true), "\u2717");
  EXPECT_EQ(mark(3, 16), "\u2717");  // no number would explain it
  EXPECT_EQ(mark(1e110, 16), "\u2717 \u221e");
  EXPECT_EQ(mark(5, 0), "\u2717 5.0");  // the same bits are asked for
}

TEST(ParityMap, LevelsGoByPowersOfTen) {
  const auto level = [](double times, bool wrong) {
    ParityRow row = parity_row(0, "forward", "head", "output", 0, 16 * times);
    row.cells[1]->wrong = wrong;
    return level_of(row, *row.cells[1]);
  };
  EXPECT_THAT(
      (std::vector{level(0, false), level(0.005, false), level(0.05, false), level(0.2, false), level(1, false)}),
      ElementsAre(0, 0, 1, 2, 3));
  EXPECT_THAT((std::vector{level(0.1, true), level(2, true), level(20, true), level(200, true), level(2e3, true),
                           level(2e5, true), level(2e7, true)}),
              ElementsAre(4, 4, 5, 6, 7, 8, 9));
}

double luminance(Rgba colour) {
  double sum = 0;
  constexpr std::array<double, 3> kShares = {0.2126, 0.7152, 0.0722};
  for (size_t i = 0; i < 3; ++i) {
    const double c = (colour >> (24 - 8 * i) & 255) / 255.0;
    sum += kShares[i] * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}

double contrast(Rgba one, Rgba two) {
  const double a = luminance(one), b = luminance(two);
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

TEST(ParityMap, LevelsLeaveTheGroundStepByStepAndTheirTextsCanBeRead) {
  for (const Ground ground : {Ground::kLight, Ground::kDark}) {
    const Rgba paper = ground == Ground::kLight ? 0xFFFFFFFF : 0x111317FF;
    for (size_t level = 0; level < kParityLevels; ++level) {
      SCOPED_TRACE(level);
      const ParityPaint strong = parity_paint(level, ground, false), later = parity_paint(level, ground, true);
      EXPECT_GE(contrast(strong.fill, strong.text), 4.5);
      EXPECT_GE(contrast(later.fill, later.text), 4.5);
      EXPECT_LT(contrast(later.fill, paper), contrast(strong.fill, paper));
      if (level == 0) continue;
      const ParityPaint before = parity_paint(level - 1, ground, false);
      EXPECT_GT(contrast(strong.fill, paper), 1.05 * contrast(before.fill, paper));
    }
  }
}

TEST(ParityLines, RowsAroundTheFirstWrongOneAreWholeAndTheOthersCounted) {
  EXPECT_EQ(text_of(parity_lines(parity_map())),
            "step 0, forward\n"
            "  * 11 right tensors\n"
            "  layers.1.mlp output\n"
            "step 0, loss\n"
            "  head loss\n"
            "step 0, backward\n"
            "  head grad_output\n"
            "  layers.1.mlp grad_output\n"
            "  layers.1.norm.weight grad\n"
            "  layers.1.norm grad_input\n"
            "  layers.0.mlp grad_output\n"
            "  layers.0.norm.weight grad\n"
            "  layers.0.norm grad_input\n"
            "step 1, forward\n"
            "  layers.0.norm input\n"
            "  layers.0.norm output\n"
            "  * layers.0: 4 wrong tensors\n"
            "  * layers.1: 6 wrong tensors\n"
            "step 1, loss\n"
            "  head loss\n"
            "step 1, backward\n"
            "  * 1 of 7 tensors wrong\n");
}

TEST(ParityLines, AStepBeforeTheFirstWrongTensorIsOneLine) {
  ParityMap map = parity_map();
  map.rows[15].cells[1]->wrong = false;
  for (size_t i = 20; i < 32; ++i) map.rows[i].cells[1]->wrong = false;
  EXPECT_EQ(map.first_wrong(), 35U);
  EXPECT_THAT(text_of(parity_lines(map)), StartsWith("step 0\n  * 20 right tensors\nstep 1, forward\n"));
}

TEST(ParityLines, AFewRowsAreAllWhole) {
  ParityMap map = parity_map();
  map.rows.resize(20);
  EXPECT_THAT(text_of(parity_lines(map)), Not(HasSubstr("*")));
}

TEST(ParityLines, OfARightRunNothingIsWhole) {
  ParityMap map = parity_map();
  for (ParityRow& row : map.rows)
    for (auto& cell : row.cells)
      if (cell) cell->wrong = false;
  EXPECT_THAT(text_of(parity_lines(map)), HasSubstr("step 0, backward\n  * 7 right tensors\nstep 1"));
}

TEST(ParitySvg, HasACellForEachRankOfALine) {
  const ParityMap map = parity_map("<b>&");
  const std::string svg = parity_svg(map);
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;&amp; against one rank"));
  EXPECT_THAT(svg, HasSubstr("layers.1.norm.weight grad on rank 1 (tp1): 1.6e+06 of 16 eps"));
  EXPECT_THAT(svg, HasSubstr("\u2717 1e5"));
  EXPECT_THAT(svg, HasSubstr("rank 1 has no part of it"));
  EXPECT_THAT(svg, HasSubstr(">to blame</text>"));
  // The first wrong tensor has its colour in full, what follows from it is paler.
  const ParityRow& first = map.rows[15];
  EXPECT_THAT(svg, HasSubstr(hex(parity_paint(level_of(first, *first.cells[1]), Ground::kLight, false).fill)));
  const ParityRow& later = map.rows[22];
  EXPECT_THAT(svg, HasSubstr(hex(parity_paint(level_of(later, *later.cells[1]), Ground::kLight, true).fill)));
}

TEST(ParityFile, HasAllThatIsShown) {
  ParityMap map = parity_map("--tp 2 \xff\"");
  map.rows[1].cells[1]->eps = std::numeric_limits<double>::infinity();
  const std::string text = parity_file_text(map);
  const ParityMap read = parse_parity_file(text, "a file");
  EXPECT_EQ(parity_file_text(read), text);
  EXPECT_EQ(read.first_wrong(), map.first_wrong());
  EXPECT_EQ(read.ranks, map.ranks);
  EXPECT_EQ(read.facts.size(), map.facts.size());
  ASSERT_EQ(read.rows.size(), map.rows.size());
  const size_t loss = 12;  // of which rank 1 has no part
  EXPECT_FALSE(read.rows[loss].cells[1]);
  EXPECT_EQ(parity_svg(read), parity_svg(parse_parity_file(parity_file_text(read), "")));
}

TEST(ParityFile, ThatIsNoneIsRefused) {
  const std::string text = parity_file_text(parity_map());
  for (const std::string& broken : {std::string(), std::string("[]"), std::string("{}"),
                                    text.substr(0, text.size() / 2), std::string(R"({"format": "another"})"),
                                    std::string(text).replace(text.find("\"cells\":[["), 9, "\"cells\":[null,")})
    EXPECT_THROW(parse_parity_file(broken, "a file"), Error) << broken.substr(0, 20);
}

}  // namespace
}  // namespace ranklab::viz
