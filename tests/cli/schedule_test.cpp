// ranklab schedule as a user runs it: figures that the papers give, the drawing, files in both directions, and named
// errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/trace/chrome_reader.h"
#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Outcome schedule(const std::string& arguments, const std::string& environment = "COLUMNS=100") {
  return run_command(environment + " " RANKLAB_PROGRAM " schedule " + arguments + " 2>&1");
}
nlohmann::json schedule_data(const std::string& arguments) { return answer_of(schedule(arguments + " --json")); }

class ScheduleCommand : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  fs::path folder_ = temporary_path("ranklab_schedule_test");
};

TEST_F(ScheduleCommand, TimesOfALargeModelHaveAllTheirDigits) {
  for (const char* how : {"compare 1f1b gpipe", "show 1f1b"}) {
    const Outcome large = schedule(std::string(how) + " --pp 4 --num-microbatches 20 --f 60248 --b 70102 --w 49945");
    ASSERT_EQ(large.exit_code, 0) << large.output;
    EXPECT_THAT(large.output, AllOf(HasSubstr("4146785"), Not(HasSubstr("e+0")))) << how;
  }
}

TEST_F(ScheduleCommand, SimulateAnswersTheUnitCostTable) {
  const auto one = schedule_data("simulate 1f1b --pp 8 --num-microbatches 32");
  EXPECT_DOUBLE_EQ(one.at("makespan"), 117);
  EXPECT_NEAR(one.at("bubble_of_total"), 0.1795, 5e-5);
  EXPECT_NEAR(one.at("bubble_of_ideal"), 21 / 96.0, 1e-12);
  EXPECT_THAT(one.at("peak_activations").get<std::vector<double>>(), ElementsAre(8, 7, 6, 5, 4, 3, 2, 1));
  EXPECT_EQ(one.at("actions").size(), 8u);
  EXPECT_EQ(one.at("actions")[7].size(), 64u);
  EXPECT_EQ(one.at("actions")[7][1], "7BW0");
  const auto four = schedule_data("simulate interleaved-1f1b --pp 8 --num-microbatches 32 --vpp 4");
  EXPECT_NEAR(four.at("bubble_of_total"), 0.0519, 5e-5);
}

// With larger groups messages have time, and ranks that wait for nothing show no rounding of nothing.
TEST_F(ScheduleCommand, SimulateTakesGroupsOfMicrobatches) {
  const std::string stages = "simulate interleaved-1f1b --pp 4 --num-microbatches 32 --vpp 2 --c 0.1";
  const std::string group = " --microbatch-group-size-per-virtual-pipeline-stage ";
  EXPECT_LT(schedule_data(stages + group + "8").at("bubble_of_total"), schedule_data(stages).at("bubble_of_total"));
  EXPECT_THAT(schedule(stages + group + "32").output, Not(HasSubstr("e-")));
}

TEST_F(ScheduleCommand, SimulateTakesCosts) {
  const auto paper =
      schedule_data("simulate zb-h1 --pp 8 --num-microbatches 24 --f 18.522 --b 18.086 --w 9.337 --c 0.601");
  EXPECT_NEAR(paper.at("bubble_of_total"), 0.1585, 5e-5);
  const auto searched = schedule_data(
      "simulate zb-2p --pp 8 --num-microbatches 64 --f 18.546 --b 18.097 --w 9.321 --c 0.762 "
      "--weight-grad-memory 0.3665");
  EXPECT_LT(searched.at("bubble_of_total"), 0.00265);
  for (const double peak : searched.at("peak_memory")) EXPECT_LE(peak, 16 + 1e-9);
  const std::string large = "simulate zb-2p --pp 16 --num-microbatches 64 --f 11.307 --b 11.254 --w 8.101 --c 0.379";
  EXPECT_LT(schedule_data(large).at("bubble_of_total"), 0.00545) << "as published, without another option";
  EXPECT_GT(schedule_data(large + " --weight-grad-memory 1").at("bubble_of_total"), 0.02);
  double all = 0;
  for (const auto& [cause, time] : paper.at("idle")[3].items()) all += time.get<double>();
  EXPECT_NEAR(all + 24 * (18.522 + 18.086 + 9.337), paper.at("end").get<double>(), 1e-6);
}

// A boundary of gpt_tiny is 128 x 128 fp32 numbers a sequence; with sequence parallelism each rank has its part.
TEST_F(ScheduleCommand, MessagesHaveBytesAndAModelHasCosts) {
  const auto units = schedule_data("simulate 1f1b --mbs 2");
  EXPECT_THAT(units.at("p2p_bytes").get<std::vector<int64_t>>(),
              ElementsAre(8 * 131072, 16 * 131072, 16 * 131072, 8 * 131072));
  const auto one = schedule_data("simulate zb-h1 --preset gpt_tiny --num-microbatches 12");
  const auto two = schedule_data("simulate zb-h1 --preset gpt_tiny --num-microbatches 12 --tp 2");
  EXPECT_EQ(one.at("p2p_bytes")[0], 12 * 65536);
  EXPECT_EQ(two.at("p2p_bytes")[0], 12 * 32768);
  EXPECT_EQ(one.at("costs").at("preset"), "gpt_tiny");
  const auto slow = schedule_data("simulate zb-h1 --preset gpt_tiny --num-microbatches 12 --hardware laptop");
  EXPECT_GT(slow.at("makespan").get<double>(), 10 * one.at("makespan").get<double>());
  // The head makes the last stage the longest; the middle ones are alike.
  const auto line = schedule_data("show 1f1b --preset gpt_tiny").at("timeline");
  const auto lasts = [&](size_t rank) {
    return line[rank][0].at("end").get<double>() - line[rank][0].at("begin").get<double>();
  };
  EXPECT_DOUBLE_EQ(lasts(1), lasts(2));
  EXPECT_GT(lasts(3), lasts(2));
}

// A block of llama_8b takes milliseconds; bf16 halves its messages, and a GPU's products take a fraction of fp32's.
TEST_F(ScheduleCommand, AModelsTypeIsNamedAndItsTimesHaveUnits) {
  const std::string model = "--preset llama_8b --tp 8 --pp 4 --num-microbatches 8";
  const auto fp32 = schedule_data("simulate 1f1b " + model), bf16 = schedule_data("simulate 1f1b --bf16 " + model);
  EXPECT_EQ(fp32.at("costs").at("dtype"), "fp32");
  EXPECT_EQ(bf16.at("costs").at("dtype"), "bf16");
  EXPECT_EQ(bf16.at("costs").at("unit"), "us");
  EXPECT_EQ(fp32.at("p2p_bytes")[0], 2 * bf16.at("p2p_bytes")[0].get<int64_t>());
  EXPECT_GT(fp32.at("makespan").get<double>(), 4 * bf16.at("makespan").get<double>());
  const std::string text = schedule("show 1f1b --bf16 " + model).output;
  EXPECT_THAT(text, HasSubstr("of llama_8b in bf16 on h100-sxm, on a rank: F "));
  EXPECT_THAT(text, HasSubstr("1 x 8192 tokens in bf16, split over tp 8; "));
  EXPECT_THAT(text, ContainsRegex("\n  time     [0-9.]+ m?s, of which a rank works [0-9.]+ m?s\n"));
  EXPECT_THAT(text, ContainsRegex("longest wait  rank 0, from [0-9.]+ m?s to [0-9.]+ m?s, for "));
  EXPECT_THAT(text, ContainsRegex("time +\\|0 [nm]?s +\\|[0-9.]+ m?s"));
  EXPECT_THAT(schedule("simulate 1f1b " + model).output, HasSubstr("of llama_8b in fp32 on h100-sxm"));
  EXPECT_THAT(schedule("compare 1f1b zb-h1 " + model).output, ContainsRegex("zb-h1 +[0-9.]+ m?s +[0-9.]+ %"));
  EXPECT_FALSE(schedule_data("simulate 1f1b").at("costs").contains("unit")) << "the user's unit";
}

TEST_F(ScheduleCommand, ShowDrawsOneRowPerRankToScale) {
  const Outcome run = schedule("show 1f1b --pp 4 --num-microbatches 8");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("rank 0   F0F1F2F3············BW0─F4BW1─"));
  EXPECT_THAT(run.output, HasSubstr("rank 3   ······F0BW0─F1BW1─"));
  EXPECT_THAT(run.output, HasSubstr("time     |0        |5        |10"));
  EXPECT_THAT(run.output, HasSubstr("27.27 % of the total, 37.50 % of the ideal"));
  EXPECT_THAT(run.output, HasSubstr("longest wait  rank 0, from 4 to 10, for 1BW0 of rank 1"));
  EXPECT_THAT(run.output, Not(HasSubstr("\033["))) << "no colour where none was asked for";
  const std::string colored = schedule("show 1f1b --color always").output;
  EXPECT_THAT(colored, HasSubstr("\033["));
  EXPECT_THAT(colored, HasSubstr("F0")) << "letters are always there";
  const auto json = schedule_data("show zb-h1");
  EXPECT_EQ(json.at("timeline")[0][0].at("action"), "0F0");
  EXPECT_EQ(json.at("timeline")[0][0].at("critical"), true);
}

size_t columns_of(const std::string& text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

TEST_F(ScheduleCommand, DrawingsKeepToTheirWidth) {
  for (const char* what :
       {"show 1f1b --pp 8 --num-microbatches 32", "show gpipe --pp 40 --num-microbatches 300", "show dualpipe",
        "compare gpipe zb-v v-min --c 0.1", "show 1f1b --pp 1 --num-microbatches 1"}) {
    for (const int width : {60, 80, 133}) {
      const Outcome run = schedule(what, "COLUMNS=" + std::to_string(width));
      ASSERT_EQ(run.exit_code, 0) << run.output;
      std::istringstream lines(run.output);
      for (std::string line; std::getline(lines, line);)
        EXPECT_TRUE(!line.starts_with("rank") || columns_of(line) <= static_cast<size_t>(width)) << line;
    }
  }
  EXPECT_THAT(schedule("show gpipe --pp 40 --num-microbatches 300").output, HasSubstr("24 more ranks (--all"));
}

TEST_F(ScheduleCommand, CompareUsesOneScale) {
  const Outcome run = schedule("compare 1f1b zb-h1 zb-v --pp 4 --num-microbatches 8");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("rank 0   F0F1F2F3············BW0─"));
  EXPECT_THAT(run.output, HasSubstr("rank 0   F0F1F2F3······B0W0F4"));
  EXPECT_THAT(run.output, HasSubstr("zb-h1             27    11.11 %    12.50 %            4        48"));
  EXPECT_THAT(run.output, HasSubstr("  times and bubbles are of the rank that takes longest, from its first start"));
  EXPECT_THAT(run.output, ContainsRegex("\n  zb-v +24 +0.00 % "));
  EXPECT_THAT(run.output, HasSubstr("  zb-v ends at 25.5: its ranks start one after another\n")) << "as it is drawn";
  EXPECT_THAT(run.output, Not(HasSubstr("1f1b ends at"))) << "its first rank works from first to last";
  EXPECT_EQ(schedule_data("compare 1f1b zb-v").at("schedules").size(), 2u);
}

TEST_F(ScheduleCommand, FilesGoBothWays) {
  ASSERT_EQ(schedule("export zb-v --pp 4 --num-microbatches 8 --dialect torch --out " + path("zbv.csv")).exit_code, 0);
  EXPECT_THAT(read("zbv.csv"), testing::StartsWith("0F0,0F1,"));
  EXPECT_THAT(read("zbv.csv"), HasSubstr("0I0"));
  const Outcome imported = schedule("import " + path("zbv.csv") + " --dialect torch --out " + path("own.csv"));
  EXPECT_EQ(imported.exit_code, 0) << imported.output;
  EXPECT_THAT(imported.output, HasSubstr("read as torch's dialect"));
  EXPECT_THAT(read("own.csv"), testing::StartsWith("# ranklab: name=zbv chain=8\n0F0,"));
  EXPECT_EQ(schedule("export " + path("own.csv") + " --dialect torch").output, read("zbv.csv")) << "exact";
  EXPECT_EQ(schedule_data("simulate " + path("zbv.csv")).at("actions"),
            schedule_data("simulate zb-v --pp 4 --num-microbatches 8").at("actions"));
  EXPECT_THAT(schedule("show " + path("own.csv")).output, HasSubstr("0.00 % of the total"));
}

TEST_F(ScheduleCommand, CheckProves) {
  const std::string sound = file("sound.csv", "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  const Outcome run = schedule("check " + sound);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("sound: 4 actions on 2 ranks, read as torch's dialect"));
  EXPECT_THAT(run.output, HasSubstr("the 4 sends and receives of the file match"));
  EXPECT_EQ(schedule_data("check " + sound).at("blocking_safe"), true);
  EXPECT_EQ(schedule("check dualpipe --pp 8 --num-microbatches 20").exit_code, 0);
}

TEST_F(ScheduleCommand, CheckNamesWhatIsWrong) {
  const auto wrong = [&](const std::string& text) {
    const Outcome run = schedule("check " + file("wrong.csv", text));
    EXPECT_EQ(run.exit_code, 4) << run.output;
    return run.output;
  };
  EXPECT_THAT(wrong("0F0,0B0,0W0\n1B0,1F0,1W0\n"),
              HasSubstr("rank 1 runs 1B0 (position 0) before 1F0 (position 1), whose result it needs"));
  EXPECT_THAT(wrong("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"), HasSubstr("rank 1 never runs 1B1"));
  EXPECT_THAT(wrong("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"), HasSubstr("deadlock: rank 0 waits at 0BW0 for 1BW0"));
  EXPECT_THAT(wrong("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n"),
              HasSubstr("row 1 (rank 0), column 2: 0SEND_F0: nobody receives it"));
  const Outcome json = schedule("check --json " + file("wrong.csv", "0F0\n"));
  EXPECT_EQ(json.exit_code, 4);
  const auto object = nlohmann::json::parse(json.output);
  EXPECT_EQ(object.at("ok"), false);
  EXPECT_EQ(object.at("error").at("code"), 4);
  EXPECT_THAT(object.at("data").at("problems")[0], HasSubstr("rank 0 never runs 0B0"));
  EXPECT_EQ(schedule("simulate " + path("wrong.csv")).exit_code, 4) << "what is wrong is not timed either";
}

// The simulation of the schedule that ran, with the costs of its own trace, takes as long as the run did.
TEST_F(ScheduleCommand, CostsMeasuredInATraceGiveTheTracedTime) {
  const std::string log = path("log");
  const std::string run =
      " train --mock-data --world-size 4 --tp 1 --pp 4 --gbs 8 --num-microbatches 8 --train-iters 1 "
      "--eval-interval 0 --sample-tokens 0 --pipeline-schedule ";
  // Costs of DualPipe are means over its two directions.
  for (const auto& [name, share] :
       {std::pair<std::string, double>{"1f1b", 0.01}, {"dualpipe", 0.02}, {"zb-h1", 0.01}}) {
    const Outcome trained = run_command(RANKLAB_PROGRAM + run + name + " --log-dir " + log + " 2>&1");
    ASSERT_EQ(trained.exit_code, 0) << trained.output;
    const std::string trace = log + "/trace.json.gz";
    int64_t begin = INT64_MAX, end = 0;
    for (const RankTrace& rank : read_chrome_trace(trace).ranks) {
      for (const Event& event : rank.events) {
        if (event.kind != EventKind::kCompute || event.stage < 0) continue;
        begin = std::min(begin, event.virtual_begin_ns);
        end = std::max(end, event.virtual_end_ns);
      }
    }
    const auto data = schedule_data("simulate " + name + " --pp 4 --num-microbatches 8 --trace " + trace);
    const double traced_us = static_cast<double>(end - begin) * 1e-3;
    EXPECT_NEAR(data.at("end").get<double>(), traced_us, share * traced_us) << name;
    EXPECT_EQ(data.at("costs").at("trace"), trace);
  }
  const std::string trace = " --trace " + log + "/trace.json.gz";
  EXPECT_EQ(schedule("simulate 1f1b --pp 8 --num-microbatches 8" + trace).exit_code, 2);
  EXPECT_THAT(schedule("simulate 1f1b --pp 4 --f 2" + trace).output, HasSubstr("the costs are given twice"));
  EXPECT_THAT(schedule("show 1f1b --pp 4 --num-microbatches 8" + trace).output,
              ContainsRegex(", on a rank: F [0-9.]+ us, B "));
}

}  // namespace
}  // namespace ranklab
