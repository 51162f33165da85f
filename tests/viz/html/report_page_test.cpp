// The report without a browser: what it says, what it says of what is missing, and that no text gets out of its place.
#include "viz/html/report/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "core/trace/chrome_writer.h"
#include "tests/viz/html/hostile_trace.h"
#include "tests/viz/html/report_sample.h"
#include "viz/html/report/line_chart.h"
#include "viz/model/store/generated_trace.h"
#include "viz/model/svg/nice_step.h"

namespace ranklab::viz {
namespace {

using samples::report_folder;
using samples::report_runs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

size_t times_in(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// A page is too long to be printed where a test fails.
bool has(const std::string& page, const std::string& part) { return page.find(part) != std::string::npos; }

std::string page_of(const std::vector<std::string>& folders) { return report_page(report_runs(folders)); }

TEST(ReportPage, tells_of_every_part_of_a_run) {
  const std::string page = page_of({report_folder("report_whole")});
  EXPECT_TRUE(has(page, "<title>ranklab: gpt_tiny on two ranks</title>"));
  EXPECT_TRUE(has(page, "ranklab train --pp 2"));
  EXPECT_TRUE(has(page, ">parallel.pp</td><td class=\"words\">2</td><td class=\"words\">flag --pp</td>"));
  EXPECT_TRUE(has(page, "1 defaults and values of the preset"));
  EXPECT_TRUE(has(page, "3 steps in 1.5"));
  EXPECT_TRUE(has(page, ">Loss <tspan"));
  EXPECT_TRUE(has(page, "data-name=\"validation\""));
  EXPECT_TRUE(has(page, "<td class=\"words\">loss_spike</td><td class=\"words\">Health/ratio</td>"));
  EXPECT_TRUE(has(page, ">F0</text>"));  // a block of the timeline
  EXPECT_TRUE(has(page, "a processor"));
  for (const char* id : {"glance", "command", "insights", "curves", "sentinels", "layout", "timeline", "traffic",
                         "memory", "zero", "experts", "precision", "settings", "machine"}) {
    EXPECT_EQ(times_in(page, std::string("<section id=\"") + id + "\">"), 1u) << id;
    EXPECT_EQ(times_in(page, std::string("<a href=\"#") + id + "\">"), 1u) << id;
  }
  EXPECT_EQ(times_in(page, "<section id=\"differences\""), 0u);
  EXPECT_LT(page.size(), 200'000u);
}

TEST(ReportPage, says_what_is_missing_and_what_records_it) {
  const std::string bare =
      page_of({report_folder("report_bare", {.record = false, .trace = false, .sentinels = false})});
  EXPECT_TRUE(has(bare, "No trace: ranklab train records one unless --no-trace"));
  EXPECT_TRUE(has(bare, "--sentinel-mode minimal, standard or debug"));
  EXPECT_TRUE(has(bare, "no run.json"));
  EXPECT_TRUE(has(bare, ">Loss <tspan"));
  const std::string trace_alone = page_of({report_folder("report_trace", {.record = false, .metrics = false})});
  EXPECT_TRUE(has(trace_alone, "metrics.jsonl, which ranklab train writes, is not there"));
  EXPECT_TRUE(has(trace_alone, "--num-experts"));
  EXPECT_TRUE(has(trace_alone, "--precision-stats-interval"));
}

TEST(ReportPage, two_runs_are_beside_each_other) {
  const std::string page =
      page_of({report_folder("report_a", {.title = "the first"}),
               report_folder("report_b", {.steps = 5, .title = "the second", .setting = "run.toml:3"})});
  EXPECT_TRUE(has(page, "<h3 class=\"a\">A: the first</h3>"));
  EXPECT_TRUE(has(page, "<h3 class=\"b\">B: the second</h3>"));
  // 5/3 and 5/5.
  EXPECT_TRUE(has(page, "<td>1.6667</td><td>1.0000</td><td>-40.0 %</td>"));
  EXPECT_TRUE(has(page, "None: both have the same settings."));
  EXPECT_TRUE(has(page, "class=\"line a\"") && has(page, "class=\"line b\""));
  // Patterns of the two timelines have different names.
  EXPECT_EQ(times_in(page, "<pattern id=\"atcause0\""), 1u);
  EXPECT_EQ(times_in(page, "<pattern id=\"btcause0\""), 1u);
}

TEST(ReportPage, settings_that_differ_are_listed_with_their_origins) {
  std::vector<RunFacts> runs = report_runs({report_folder("report_c"), report_folder("report_d")});
  runs[1].files.record->settings[0].value = "4";
  runs[1].files.record->settings.push_back({"optim.beta", "0.9", "--set"});
  const std::string page = report_page(runs);
  EXPECT_TRUE(has(page, ">parallel.pp</td><td class=\"words\">2</td><td class=\"words\">4</td>"));
  EXPECT_TRUE(has(page, ">optim.beta</td><td class=\"words\">-</td><td class=\"words\">0.9</td>"));
}

TEST(ReportPage, no_text_of_a_run_is_markup_or_script) {
  const std::string attack = samples::kAttack + " @MAIN@ @PROGRAM@ \" onload=\"x <img src=x onerror=alert(1)> \x01";
  std::vector<RunFacts> plain = report_runs({report_folder("report_plain")});
  std::vector<RunFacts> runs = report_runs({report_folder("report_hostile", {.title = attack, .setting = attack})});
  runs[0].files.folder = runs[0].files.folder + attack + "\xff\xfe";
  runs[0].files.record->command = attack;
  runs[0].files.record->machine[0] = {attack, attack};
  runs[0].files.sentinels.fired[0].tag = attack;
  runs[0].files.problems = {attack};
  plain[0].files.problems = {"none"};
  const std::string page = report_page(runs), other = report_page(plain);
  for (const char* tag :
       {"<script", "</script", "<!--", "<img", "<b>", "<title", "<section", "<td", "<tr", "<pre", "<p "})
    EXPECT_EQ(times_in(page, tag), times_in(other, tag)) << tag;
  EXPECT_EQ(times_in(page, " onload=\""), 0u);
  EXPECT_TRUE(has(page, "\\xff\\xfe"));
  EXPECT_EQ(times_in(page, "\x01"), 0u);
}

TEST(ReportPage, refers_to_no_network) {
  const std::string page = page_of({report_folder("report_offline")});
  EXPECT_TRUE(has(page, "default-src 'none'"));
  for (const char* part :
       {"http:", "https:", "src=", "import ", "fetch(", "XMLHttpRequest", "WebSocket", "innerHTML", "eval("})
    EXPECT_EQ(times_in(page, part), 0u) << part;
  EXPECT_EQ(times_in(page, "href="), times_in(page, "href=\"#"));
  EXPECT_EQ(times_in(page, "url("), times_in(page, "url(#"));
  EXPECT_FALSE(std::regex_search(page, std::regex("@[A-Z]+@")));
}

TEST(ReportPage, stays_below_a_megabyte_whatever_the_run) {
  const std::string folder = report_folder("report_large", {.steps = 5'000, .trace = false});
  TraceFile large = generated_trace(100'000);
  write_chrome_trace(folder + "/trace.json.gz", large.ranks);
  const std::string one = page_of({folder});
  EXPECT_LT(one.size(), 1'000'000u);
  EXPECT_TRUE(has(one, "A point represents several steps"));
  EXPECT_LT(page_of({folder, folder}).size(), 1'000'000u);
}

TEST(ReportPage, of_many_ranks_those_that_differ_are_drawn) {
  MeshTable mesh;
  // dp 8 x tp 2 x pp 4
  for (int rank = 0; rank < 64; ++rank)
    mesh.ranks.push_back({rank, {{Axis::kTp, rank % 2}, {Axis::kDp, rank / 2 % 8}, {Axis::kPp, rank / 16}}});
  EXPECT_EQ(telling_ranks(mesh, 64).size(), 64u);
  EXPECT_THAT(telling_ranks(mesh, 16), testing::ElementsAre(0, 1, 16, 17, 32, 33, 48, 49));
  EXPECT_THAT(telling_ranks(mesh, 4), testing::ElementsAre(0, 16, 32, 48));
  EXPECT_THAT(telling_ranks(mesh, 3), testing::ElementsAre(0, 16, 32));
}

TEST(ReportPage, losses_that_are_not_finite_are_marked) {
  const std::string page = page_of({report_folder("report_nan", {.steps = 4, .finite = false})});
  EXPECT_TRUE(has(page, "<title>step 1: not finite</title>"));
  EXPECT_TRUE(has(page, "training, 1 not finite"));
  EXPECT_FALSE(has(page, "nan\""));
}

Curve curve_of(const std::vector<double>& values) {
  Curve curve;
  for (size_t i = 0; i < values.size(); ++i)
    curve.points.push_back({static_cast<int>(i), values[i], values[i], values[i]});
  return curve;
}

TEST(LineChart, a_line_goes_through_its_values) {
  const Curve curve = curve_of({0, 10, 5});
  const std::string svg = line_chart("Loss", "", {{&curve, "", "a"}});
  // The plot: x 58 to 366 for steps 0 to 2, y 188 to 46 for 0 to 10.6.
  EXPECT_THAT(svg, HasSubstr("data-at=\"58.0,0 212.0,10 366.0,5\" d=\"M58.0 188.0L212.0 54.0L366.0 121.0\""));
  EXPECT_THAT(svg, HasSubstr(">10</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("class=\"band")));
}

TEST(LineChart, ranges_become_bands_and_gaps_break_lines) {
  Curve curve = curve_of({1, 2, std::numeric_limits<double>::quiet_NaN(), 3, 4});
  curve.points[0].high = 2;
  const std::string svg = line_chart("Loss", "", {{&curve, "", "a"}});
  EXPECT_EQ(times_in(svg, "class=\"band a\""), 1u);
  EXPECT_TRUE(std::regex_search(svg, std::regex(R"(d="M[\d. ]+L[\d. ]+M[\d. ]+L[\d. ]+")"))) << svg;
}

TEST(LineChart, odd_values_end) {
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  for (const std::vector<double>& values : std::vector<std::vector<double>>{
           {1e17, 1e17 + 16}, {-most, most}, {0, least}, {5}, {0, 0}, {-3, -3}, {std::nan("")}, {1e-30, 2e-30}}) {
    const Curve curve = curve_of(values);
    const std::string svg = line_chart("x", "", {{&curve, "", "a"}});
    EXPECT_THAT(svg, AllOf(HasSubstr("</svg>"), Not(HasSubstr("nan")), Not(HasSubstr("inf")))) << values[0];
    EXPECT_LT(svg.size(), 8'000u);
  }
  EXPECT_EQ(line_chart("x", "", {}), "");
}

TEST(LineChart, marks_are_one_two_or_five_times_a_power_of_ten) {
  EXPECT_DOUBLE_EQ(nice_step(10, 5), 2);
  EXPECT_DOUBLE_EQ(nice_step(11, 5), 5);
  EXPECT_DOUBLE_EQ(nice_step(0.05, 5), 0.01);
  EXPECT_DOUBLE_EQ(nice_step(7, 10), 1);
}

}  // namespace
}  // namespace ranklab::viz
