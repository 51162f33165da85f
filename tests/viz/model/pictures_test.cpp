// The timeline as text and as SVG, the matrix as SVG.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "core/base/text.h"
#include "core/pipeline/schedules.h"
#include "tests/viz/model/make_trace.h"
#include "viz/model/store/schedule_store.h"
#include "viz/model/store/time_text.h"
#include "viz/model/svg.h"
#include "viz/model/text_timeline.h"

namespace ranklab::viz {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TraceStore drawn(const std::string& name, int ranks, int microbatches) {
  return schedule_store(make_schedule(name, {.num_ranks = ranks, .num_microbatches = microbatches}), ScheduleCosts{});
}

TEST(TextTimeline, ASmallScheduleToTheLetter) {
  EXPECT_EQ(text_timeline(drawn("1f1b", 2, 2), {.range = {}, .width = 37, .axes = false}),
            "r0 pp0    F0=F1=------BW0===---BW1===\n"
            "r1 pp1    ...F0=BW0===F1=BW1===______\n"
            "time      |0 units       |5 units\n"
            "F forward  BW backward  = continues  '.' warm-up  '-' dependency  '_' drain\n");
}

TEST(TextTimeline, NarrowSlicesShowWhatFillsAColumn) {
  const std::string text = text_timeline(drawn("1f1b", 8, 32), {.range = {}, .width = 60, .axes = false});
  EXPECT_THAT(text, HasSubstr("r7 pp7"));
  for (const char* row : {"r0 pp0", "r7 pp7"}) {
    const std::string line = text.substr(text.find(row), text.find('\n', text.find(row)) - text.find(row));
    EXPECT_LE(line.size(), 60U);
    EXPECT_THAT(line, HasSubstr("B"));
  }
  EXPECT_THAT(text, HasSubstr("F forward  BW, B backward  '.' warm-up"));
}

// Of a backward that is whole and one that is split into B and W, each has a letter of its own.
TEST(TextTimeline, AWholeBackwardIsNoInputGradient) {
  Tracer tracer(0, "");
  for (int i = 0; i < 12; ++i) {
    const char* const name = i % 3 == 0 ? "BW" : i % 3 == 1 ? "B" : "W";
    tracer.record(samples::compute(tracer, name, 100 * i, 100 * (i + 1), 0, i, 0));
  }
  const TraceStore store(samples::file_of({tracer.take()}));
  const std::string text = text_timeline(store, {.range = {0, 1200}, .width = 22});
  EXPECT_THAT(text, HasSubstr(" bBWbBWbBWbBW\n"));
  EXPECT_THAT(text, HasSubstr("B input gradient  W weight gradient  BW, b backward"));
}

// Where its letters do not fit, one letter identifies the verb, and the legend names it.
TEST(TextTimeline, EachVerbHasALetterOfItsOwn) {
  std::set<std::string_view> letters_of_verbs;
  for (auto p = static_cast<size_t>(Paint::kAllReduce); p < kPaints; ++p)
    EXPECT_TRUE(letters_of_verbs.insert(letter(static_cast<Paint>(p))).second) << letter(static_cast<Paint>(p));
  Tracer tracer(0, "");
  tracer.set_group(Axis::kDp, {0, 1});
  int64_t at = 0;
  for (const Verb verb : {Verb::kAllReduce, Verb::kReduceScatter, Verb::kAllGather, Verb::kAllToAll}) {
    tracer.record(samples::call(tracer, {.verb = verb, .sequence = at, .posted = at, .begin = at, .end = at + 10}));
    at += 1000;
  }
  TraceFile file;
  file.world_size = 2;
  file.ranks.push_back(tracer.take());
  const std::string text = text_timeline(TraceStore(std::move(file)), {.range = {0, 8000}, .width = 35});
  EXPECT_THAT(text, testing::ContainsRegex("R +S +G +X\n"));
  EXPECT_THAT(text, HasSubstr("AR, R all_reduce  RS, S reduce_scatter  AG, G all_gather  A2A, X all_to_all"));
}

TEST(TextTimeline, ColourOnlyWhenAsked) {
  const Rgba forward = colour(Paint::kForward);
  EXPECT_THAT(text_timeline(drawn("1f1b", 2, 2)), Not(HasSubstr("\033")));
  EXPECT_THAT(text_timeline(drawn("1f1b", 2, 2), {.range = {}, .width = 60, .axes = true, .colour = true}),
              HasSubstr(strprintf("\033[48;2;%u;%u;%um", forward >> 24, forward >> 16 & 255, forward >> 8 & 255)));
}

TEST(TextTimeline, TotalsSayBothShares) {
  const TraceStore store = drawn("1f1b", 8, 32);
  const std::string text = text_totals(store, store.whole());
  const std::string mean = text.substr(text.find("mean"));
  EXPECT_THAT(mean, HasSubstr("117 units"));
  EXPECT_THAT(mean, HasSubstr("17.95 %"));
  EXPECT_THAT(mean, HasSubstr("21.88 %"));
}

TEST(TextTimeline, EmptyAndBroken) {
  EXPECT_EQ(text_timeline(TraceStore()), "no events\n");
  TraceStore store = samples::straggler_store();
  store.set_warning("broken after 3 events");
  EXPECT_THAT(text_timeline(store), HasSubstr("broken after 3 events"));
}

// Every tag that is opened is closed, in order.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const std::string tag = xml.substr(at + 1, xml.find('>', at) - at - 1);
    const std::string name = tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty()) << tag;
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(Svg, TimelineIsVectorText) {
  const std::string svg =
      timeline_svg(drawn("1f1b", 8, 32), {.range = {}, .width = 2400, .axes = false, .critical_path = true});
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr(">F0</text>"));
  EXPECT_THAT(svg, HasSubstr(">BW31</text>"));
  EXPECT_THAT(svg, HasSubstr("waits for r1 BW0 (dependency)"));
  EXPECT_THAT(svg, HasSubstr("bubble 17.95 % of total, 21.88 % of ideal"));
  EXPECT_THAT(svg, HasSubstr("#d55e00"));
}

// No row of phases is drawn, and of the axes none without `axes`.
TEST(TimelineSvg, TheLegendIsOfWhatIsDrawn) {
  Tracer tracer(0, "");
  tracer.record(samples::compute(tracer, "F", 0, 100, 0, 0));
  tracer.record(samples::call(tracer, {.posted = 100, .begin = 100, .end = 120}));
  tracer.record(samples::phase(tracer, "forward-backward", 0, 120));
  const TraceStore store(samples::file_of({tracer.take()}));
  const std::string svg = timeline_svg(store), without = timeline_svg(store, {.range = {}, .axes = false});
  EXPECT_THAT(svg, HasSubstr(">forward</text>"));
  EXPECT_THAT(svg, HasSubstr(">all_reduce</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">phase</text>")));
  EXPECT_THAT(without, Not(HasSubstr(">all_reduce</text>")));
}

TEST(Svg, NamesAreEscaped) {
  Tracer tracer(0, "<&\">");
  tracer.record(samples::compute(tracer, "<script>", 0, 10));
  const std::string svg = timeline_svg(TraceStore(samples::file_of({tracer.take()})));
  expect_well_formed(svg);
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
}

TEST(Svg, MatrixHasCellsAndSums) {
  const TraceStore store = samples::straggler_store();
  const std::string svg = matrix_svg(traffic_matrix(store, store.whole()), TrafficLayer::kAlgorithm, "step 0");
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr(">1000 B</text>"));
  EXPECT_THAT(svg, HasSubstr(">1.95 KiB</text>"));
  EXPECT_THAT(svg, HasSubstr("step 0 (algorithm bytes"));
}

TEST(TimeText, StepsOfAnAxis) {
  EXPECT_EQ(axis_step_ns(1000, 10), 100);
  EXPECT_EQ(axis_step_ns(1001, 10), 200);
  EXPECT_EQ(axis_step_ns(3000, 10), 500);
  EXPECT_EQ(axis_step_ns(0, 10), 1);
  EXPECT_EQ(format_percent(0.17948717), "17.95 %");
}

}  // namespace
}  // namespace ranklab::viz
