// Rows that differ in their layout alone are a sweep, and it says whether plans choose well among them.
#include "core/plan/measured/layout_sweeps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/measured_rows.h"

namespace ranklab {
namespace {

// A GPT on A100 in fp16: "ID layers tp pp micro_batch source seconds".
std::string row(const std::string& id, int layers, int tp, int pp, int micro_batch, const std::string& source,
                double seconds) {
  return R"({"id": ")" + id + R"(", "source": ")" + source +
         R"(", "config": {"model": "GPT", "hidden": 2304, "heads": 24, "vocab": 51200, "seq": 2048,
         "global_batch": 64, "gpus": 32, "gpu_type": "A100-80GB", "precision": "fp16", "layers": )" +
         std::to_string(layers) + R"(, "tp": )" + std::to_string(tp) + R"(, "pp": )" + std::to_string(pp) +
         R"(, "micro_batch": )" + std::to_string(micro_batch) + R"(}, "measured": {"step_time_s": )" +
         std::to_string(seconds) + "}}";
}

std::vector<LayoutSweep> sweeps_of(const std::vector<MeasuredRun>& runs, const std::vector<double>& predicted) {
  std::vector<TimedRun> timed;
  for (size_t i = 0; i < runs.size(); ++i) timed.push_back({&runs[i], predicted.at(i)});
  return layout_sweeps(timed);
}

TEST(LayoutSweeps, AreRowsOfOneModelMachineAndSource) {
  const auto runs = rows_of("[" + row("a", 24, 2, 4, 2, "x", 1.5) + "," + row("b", 24, 4, 2, 2, "x", 1.4) + "," +
                            row("c", 24, 4, 2, 1, "x", 2.0) + "," + row("other model", 48, 4, 2, 1, "x", 1) + "," +
                            row("other source", 24, 4, 2, 1, "y", 1) + "]");
  const auto sweeps = sweeps_of(runs, {3, 4, 5, 1, 1});
  ASSERT_EQ(sweeps.size(), 1u);
  EXPECT_EQ(sweeps[0].layouts, 3u);
  EXPECT_EQ(sweeps[0].what, "24 layers of 2304, 32 GPUs, batch 64 (x)");
  EXPECT_EQ(sweeps[0].chosen, "a");
  EXPECT_EQ(sweeps[0].fastest, "b");
  EXPECT_DOUBLE_EQ(sweeps[0].chosen_s, 1.5);
  EXPECT_FALSE(sweeps[0].right()) << "7 % slower";
  EXPECT_TRUE(sweeps_of(runs, {4, 3, 5, 1, 1})[0].right());
}

TEST(LayoutSweeps, ARunThatWasRepeatedCountsInTheMean) {
  const auto runs = rows_of("[" + row("a", 24, 2, 4, 2, "x", 1) + "," + row("a again", 24, 2, 4, 2, "x", 2) + "," +
                            row("b", 24, 4, 2, 2, "x", 1.55) + "]");
  const auto sweeps = sweeps_of(runs, {5, 5, 6});
  ASSERT_EQ(sweeps.size(), 1u);
  EXPECT_EQ(sweeps[0].layouts, 2u);
  EXPECT_DOUBLE_EQ(sweeps[0].fastest_s, 1.5);
  EXPECT_TRUE(sweeps[0].right());
  EXPECT_TRUE(sweeps_of(runs, {6, 6, 5})[0].right()) << "within 5 %";
  EXPECT_TRUE(sweeps_of({runs[0], runs[1]}, {1, 1}).empty()) << "one layout is no sweep";
}

// Where the release or the network differs as well nobody knows what the layout did.
TEST(LayoutSweeps, AreNotOfDifferentConditions) {
  std::string other = row("b", 24, 4, 2, 2, "x", 1.4);
  other.replace(other.find("\"model\""), 0, R"("container": "nemo:25.04", )");
  const auto runs = rows_of("[" + row("a", 24, 2, 4, 2, "x", 1.5) + "," + other + "]");
  EXPECT_TRUE(sweeps_of(runs, {1, 2}).empty());
}

}  // namespace
}  // namespace ranklab
