// trace stats, trace diff and bench viz, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Outcome ranklab(const std::string& arguments) {
  return run_command(std::string(RANKLAB_PROGRAM) + " " + arguments + " 2>&1");
}

nlohmann::json data_of(const std::string& arguments) {
  const Outcome run = run_command(std::string(RANKLAB_PROGRAM) + " " + arguments + " --json");
  const nlohmann::json json = nlohmann::json::parse(run.output, nullptr, false);
  EXPECT_TRUE(json.is_object() && json.at("ok").get<bool>()) << run.output;
  return json.at("data");
}

// Two steps of a small pipeline; once a machine.
const std::string& trained(const std::string& hardware) {
  static std::map<std::string, std::string> traces;
  std::string& trace = traces[hardware];
  if (!trace.empty()) return trace;
  const std::string folder = temporary_path("trace_stats_" + hardware);
  const Outcome run = ranklab(
      "train --mock-data --num-layers 4 --hidden-size 32 --ffn-hidden-size 64 --num-attention-heads 4 --seq-length 32 "
      "--pp 4 --tp 2 --num-microbatches 4 --gbs 8 --train-iters 2 --eval-interval 0 --sample-tokens 0 "
      "--hardware " +
      hardware + " --log-dir " + folder);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return trace = folder + "/trace.json.gz";
}

TEST(TraceStats, GoldenFiguresOfASchedule) {
  const std::string path = temporary_path("stats") + ".csv";
  ASSERT_EQ(ranklab("schedule export 1f1b --pp 8 --num-microbatches 32 --dialect torch --out " + path).exit_code, 0);
  const Outcome run = ranklab("trace stats " + path);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const std::string mean = run.output.substr(run.output.find("\nmean"));
  EXPECT_THAT(mean.substr(0, mean.find('\n', 1)),
              AllOf(HasSubstr("117 units"), HasSubstr("17.95 %"), HasSubstr("21.88 %")));
  EXPECT_THAT(run.output, AllOf(HasSubstr("critical path: 117 units of 117 units"), HasSubstr("warm-up"),
                                HasSubstr("waits for r1 BW0 (dependency)")));
  std::filesystem::remove(path);
}

TEST(TraceStats, OfARunAddsUp) {
  const auto data = data_of("trace stats " + trained("h100-sxm") + " --step 1");
  EXPECT_EQ(data.at("clock"), "virtual");
  EXPECT_EQ(data.at("step"), 1);
  const auto length = data.at("length_ns").get<int64_t>();
  EXPECT_EQ(data.at("critical_path").at("length_ns"), length);
  int64_t on_path = 0;
  for (const auto& [name, time] : data.at("critical_path").at("by_operation_ns").items())
    on_path += time.get<int64_t>();
  EXPECT_EQ(on_path, length);
  ASSERT_EQ(data.at("ranks").size(), 8U);
  for (const auto& rank : data.at("ranks")) {
    EXPECT_EQ(rank.at("total_ns"), length);
    EXPECT_EQ(
        rank.at("busy_ns").get<int64_t>() + rank.at("bubble_ns").get<int64_t>() + rank.at("exposed_ns").get<int64_t>(),
        length);
  }
  EXPECT_GT(data.at("all").at("by_cause_ns").at("dependency"), 0);
  EXPECT_GT(data.at("traffic").at("algorithm_bytes"), 0);
}

// What the engine says of a step is what the tables find in its events.
TEST(TraceStats, AgreesWithTheMetricsOfTheRun) {
  const std::string trace = trained("h100-sxm");
  std::ifstream file(std::filesystem::path(trace).parent_path() / "metrics.jsonl");
  std::string line;
  for (int step = 0; std::getline(file, line); ++step) {
    const auto metrics = nlohmann::json::parse(line);
    const auto all = data_of("trace stats " + trace + " --step " + std::to_string(step)).at("all");
    const auto total = all.at("total_ns").get<double>();
    EXPECT_NEAR(all.at("exposed_ns").get<double>() / total, metrics.at("exposed_comm_fraction").get<double>(), 0.01);
    EXPECT_NEAR(total / 8e6, metrics.at("virtual_step_ms").get<double>(), 0.01 * total / 8e6);
  }
}

TEST(TraceStats, RefusesAStepThatIsNotThere) {
  const Outcome run = ranklab("trace stats " + trained("h100-sxm") + " --step 7");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("no such step; got --step 7; want 0 to 1"));
  EXPECT_EQ(ranklab("trace stats /no/such/file").exit_code, 8);
}

TEST(TraceStats, ACutFileIsReportedOnWithAWarning) {
  const std::string path = temporary_path("stats_cut") + ".json.gz";
  std::ifstream whole(trained("h100-sxm"), std::ios::binary);
  std::stringstream bytes;
  bytes << whole.rdbuf();
  std::ofstream(path, std::ios::binary) << bytes.str().substr(0, bytes.str().size() / 2);
  const Outcome run = ranklab("trace stats " + path);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("broken after"));
  std::filesystem::remove(path);
}

TEST(TraceDiff, TheSameTraceIsTheSame) {
  const Outcome run = ranklab("trace diff --fail-over 0 " + trained("h100-sxm") + " " + trained("h100-sxm"));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("the same: every delta is 0"));
}

TEST(TraceDiff, AnotherMachineIsOverTheLimit) {
  const std::string both = trained("h100-sxm") + " " + trained("laptop");
  const Outcome fails = ranklab("trace diff --fail-over 5 " + both);
  EXPECT_EQ(fails.exit_code, 4) << fails.output;
  EXPECT_THAT(fails.output,
              AllOf(HasSubstr("2 pairs of steps"), HasSubstr("makespan"), HasSubstr("over the limit of 5 %")));
  const Outcome reports = ranklab("trace diff " + both);
  EXPECT_EQ(reports.exit_code, 0);
  EXPECT_THAT(reports.output, Not(HasSubstr("over the limit")));
  const auto data = data_of("trace diff " + both);
  EXPECT_FALSE(data.at("same").get<bool>());
  EXPECT_NE(data.at("makespan_ns").at("delta"), 0);
}

TEST(BenchViz, PrintsLoadTimes) {
  const Outcome run = ranklab("bench viz --events 20000 --frames 0");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("20000 events"), HasSubstr("load trace.json "),
                                HasSubstr("load trace.json.gz"), HasSubstr("critical path and slack")));
}

}  // namespace
}  // namespace ranklab
