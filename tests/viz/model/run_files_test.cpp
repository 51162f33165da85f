// A run's folder as reports read it: long and broken files, what a run lacks, texts of anybody.
#include "viz/model/run/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/trace/chrome_writer.h"
#include "tests/cli/run_program.h"
#include "tests/viz/model/stage_sample.h"
#include "viz/model/run/run_end.h"
#include "viz/model/run/run_facts.h"
#include "viz/model/store/load_trace.h"

namespace ranklab::viz {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RunFolder : public testing::Test {
 protected:
  RunFolder() : folder_(temporary_path("run_folder")) {
    std::filesystem::remove_all(folder_);  // of the test before
    std::filesystem::create_directories(folder_);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  const std::string folder_;
};

std::string line(int step, const std::string& loss) {
  return "{\"step\":" + std::to_string(step) + ",\"loss\":" + loss + "}\n";
}

TEST_F(RunFolder, ALongCurveIsThinnedAndItsEndsStay) {
  std::string text;
  constexpr int kSteps = 10'000;
  for (int step = 0; step < kSteps; ++step) text += line(step, std::to_string(step % 2 == 0 ? 3 : 5));
  write("metrics.jsonl", text);
  const RunFiles run = read_run(folder_);
  const Curve* loss = run.curve("loss");
  ASSERT_NE(loss, nullptr);
  EXPECT_LE(loss->points.size(), 400u);
  EXPECT_GE(loss->points.size(), 150u);
  EXPECT_EQ(loss->values, kSteps);
  EXPECT_EQ(loss->first_value, 3);
  EXPECT_EQ(loss->last_value, 5);
  for (const CurvePoint& point : loss->points) {
    EXPECT_EQ(point.value, 4);  // the mean of as many threes as fives
    EXPECT_EQ(point.low, 3);
    EXPECT_EQ(point.high, 5);
  }
  EXPECT_LT(loss->points.front().step, 64);
  EXPECT_GT(loss->points.back().step, kSteps - 64);
  // Without thinning every value is a point.
  EXPECT_EQ(read_metric_lines(folder_ + "/metrics.jsonl").curves[0].points.size(), static_cast<size_t>(kSteps));
}

TEST_F(RunFolder, ValuesThatAreNoNumbersDoNotTakeTheirNeighboursAlong) {
  std::string text;
  for (int step = 0; step < 3000; ++step) text += line(step, step % 100 == 50 ? "null" : "2");
  write("metrics.jsonl", text);
  const RunFiles run = read_run(folder_);
  const Curve& loss = *run.curve("loss");
  EXPECT_EQ(loss.bad_steps.size(), 30u);
  EXPECT_EQ(loss.bad_steps[0], 50);
  for (const CurvePoint& point : loss.points) EXPECT_EQ(point.value, 2);
}

TEST_F(RunFolder, ABrokenLineEndsTheMetricsAndIsTold) {
  write("metrics.jsonl", line(0, "2") + R"({"step":0,"validation_loss":2.5})" + "\n" + line(1, "1.5") +
                             R"({"step":1,"validation_loss":2.25})" + "\n" + R"({"step":2,"lo)");
  const RunFiles run = read_run(folder_);
  EXPECT_EQ(run.curve("loss")->points.size(), 2u);
  EXPECT_THAT(run.problems, ElementsAre("metrics.jsonl: line 5 is not a JSON object; what is before it is shown"));
  const Curve* validation = run.curve("validation_loss");
  ASSERT_TRUE(validation != nullptr && validation->points.size() == 2);
  EXPECT_EQ(validation->last_value, 2.25);
  EXPECT_FALSE(run.record.has_value());
  EXPECT_FALSE(run.trace.has_value());
}

TEST_F(RunFolder, ALineWithoutAnEndIsRefusedBeforeItFillsTheMemory) {
  write("metrics.jsonl", line(0, "2") + "{\"step\":1,\"text\":\"" + std::string(8 << 20, 'x'));
  const RunFiles run = read_run(folder_);
  EXPECT_EQ(run.curve("loss")->points.size(), 1u);
  ASSERT_EQ(run.problems.size(), 1u);
  EXPECT_THAT(run.problems[0], HasSubstr("metrics.jsonl"));
}

TEST_F(RunFolder, APipeInPlaceOfAFileIsToldAndNothingWaits) {
  write("metrics.jsonl", line(0, "2"));
  ASSERT_EQ(::mkfifo((folder_ + "/run.json").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((folder_ + "/sentinels.jsonl").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((folder_ + "/trace.json.gz").c_str(), 0600), 0);
  const RunFiles run = read_run(folder_);
  ASSERT_EQ(run.problems.size(), 3u);
  EXPECT_THAT(run.problems[0], AllOf(HasSubstr("run.json"), HasSubstr("a pipe")));
  EXPECT_NE(run.curve("loss"), nullptr);
}

TEST_F(RunFolder, SentinelsThatFiredAreCollected) {
  const auto fired = [](int step, double value, const char* level) {
    return strprintf(
        "{\"step\":%d,\"values\":{\"Health/x\":%g},\"fired\":[{\"sentinel\":\"loss_spike\",\"tag\":\"Health/x\","
        "\"value\":%g,\"level\":\"%s\",\"bounds\":\"above 3\",\"action\":\"warn\",\"begins\":true}]}\n",
        step, value, value, level);
  };
  write("sentinels.jsonl", "{\"step\":0,\"values\":{\"Health/x\":1},\"fired\":[]}\n" + fired(1, 4, "warn") +
                               fired(7, 3.5, "warn") + fired(9, 12, "stop") + "{\"step\":10,\"fired\":[]}\n");
  const FiredSentinels sentinels = read_run(folder_).sentinels;
  EXPECT_TRUE(sentinels.watched);
  EXPECT_EQ(sentinels.steps, 5);
  ASSERT_EQ(sentinels.fired.size(), 1u);
  const FiredSentinel& one = sentinels.fired[0];
  EXPECT_EQ(one.name, "loss_spike");
  EXPECT_EQ(one.first_step, 1);
  EXPECT_EQ(one.last_step, 9);
  EXPECT_EQ(one.times, 3);
  EXPECT_EQ(one.first_value, 4);
  EXPECT_EQ(one.lowest, 3.5);
  EXPECT_EQ(one.highest, 12);
  EXPECT_TRUE(one.stops);
  EXPECT_EQ(one.bounds, "above 3");
}

TEST_F(RunFolder, ARecordOfOddTypesIsReadAsFarAsItGoes) {
  write("run.json", R"({"command": "ranklab train", "ranks": "many", "settings": [["optim.lr", "1e-3", "flag --lr"],
    ["model.preset", "gpt_tiny", "default"], [1, 2, 3], "x"], "machine": {"cores": 2}, "outcome": {"steps_done": 4, "seconds": 2.5}})");
  const RunFiles run = read_run(folder_);
  ASSERT_TRUE(run.record.has_value());
  EXPECT_EQ(run.record->command, "ranklab train");
  EXPECT_EQ(run.record->ranks, 0);
  ASSERT_EQ(run.record->settings.size(), 2u);
  EXPECT_TRUE(run.record->find("optim.lr")->given());
  EXPECT_FALSE(run.record->find("model.preset")->given());
  EXPECT_EQ(run.record->outcome->steps_done, 4);
  write("run.json", "[1");
  EXPECT_THAT(read_run(folder_).problems, ElementsAre(HasSubstr("run.json: not a run's record")));
}

TEST_F(RunFolder, WhatIsNoRunIsRefused) {
  EXPECT_THROW(read_run(folder_), Error);  // empty
  EXPECT_THROW(read_run(folder_ + "/absent"), Error);
  write("notes.txt", "mine");
  EXPECT_THROW(read_run(folder_ + "/notes.txt"), Error);
  write("numbers.json", R"({"a": 1})");
  EXPECT_THROW(read_run(folder_ + "/numbers.json"), Error) << "a page without a run would look like a run without data";
}

TEST_F(RunFolder, ATraceMayHaveAnyName) {
  const std::string copy = folder_ + "/monday.json.gz";
  write_chrome_trace(copy, samples::one_microbatch().ranks);
  EXPECT_THROW(read_run(folder_), Error) << "nobody said which file is the run's";
  EXPECT_TRUE(read_run(copy).trace.has_value());
  EXPECT_THAT(files_of_run(copy), testing::Contains(copy)) << "no report may overwrite it";
  // It need not be of the run that lies beside it.
  write("metrics.jsonl", line(0, "2"));
  write("run.json", R"({"command": "ranklab train", "settings": []})");
  const RunFiles alone = read_run(copy);
  EXPECT_TRUE(alone.trace.has_value());
  EXPECT_FALSE(alone.record.has_value());
  EXPECT_EQ(alone.curve("loss"), nullptr);
}

TEST_F(RunFolder, AFileOfTheFolderStandsForIt) {
  write_chrome_trace(folder_ + "/trace.json.gz", samples::one_microbatch().ranks);
  write("metrics.jsonl", line(0, "2"));
  write("run.json", R"({"command": "ranklab train", "settings": []})");
  for (const char* name : {"run.json", "metrics.jsonl", "trace.json.gz"}) {
    const RunFiles run = read_run(folder_ + "/" + name);
    EXPECT_TRUE(run.trace.has_value()) << name;
    EXPECT_TRUE(run.record.has_value()) << name;
    EXPECT_NE(run.curve("loss"), nullptr) << name;
    EXPECT_TRUE(run.problems.empty()) << name;
  }
}

TEST_F(RunFolder, ARunThatFailedSaysSo) {
  write_chrome_trace(folder_ + "/trace.json.gz", samples::one_microbatch().ranks);
  const auto end = [&](const std::string& outcome) {
    write("run.json", R"({"settings": [], "outcome": )" + outcome + "}");
    return run_end_beside(load_trace(folder_ + "/trace.json.gz"));
  };
  write("metrics.jsonl", line(0, "2") + line(1, "1"));
  EXPECT_EQ(end(R"({"steps_done": 2, "seconds": 1, "error": "", "stopped": "", "interrupted": false})").words, "");
  const RunEnd error =
      end(R"({"steps_done": 2, "error": "[step 2] training diverged; got nan\nrank 1: ...", "failed_step": 2})");
  EXPECT_EQ(error.words, "the run ended with an error: [step 2] training diverged; got nan");
  EXPECT_TRUE(error.failed);
  EXPECT_EQ(error.step, 2);
  const RunEnd interrupted = end(R"({"steps_done": 1, "interrupted": true})");
  EXPECT_EQ(interrupted.words, "the run was interrupted after 1 step");
  EXPECT_FALSE(interrupted.failed);
  EXPECT_EQ(end(R"({"steps_done": 2, "stopped": "loss_spike"})").words,
            "a sentinel stopped the run after 2 steps: loss_spike");
  EXPECT_THAT(end("null").words, HasSubstr("not recorded"));
  // Nobody stopped it.
  write("metrics.jsonl", line(0, "2") + line(1, "null") + line(2, "1") + line(3, "null") + line(4, "null"));
  const RunEnd diverged = end(R"({"steps_done": 5})");
  EXPECT_EQ(diverged.words, "the run diverged: its loss is not finite from step 3 on");
  EXPECT_EQ(diverged.step, 3);
  // A trace of another name may be of another run.
  std::filesystem::rename(folder_ + "/trace.json.gz", folder_ + "/monday.json.gz");
  EXPECT_EQ(run_end_beside(load_trace(folder_ + "/monday.json.gz")).words, "");
}

TEST_F(RunFolder, TheNumbersToCompareBy) {
  std::string text;
  for (const char* row : {"9,\"virtual_step_ms\":8", "2,\"virtual_step_ms\":4", "1.5,\"virtual_step_ms\":2"})
    text +=
        strprintf("{\"step\":%zu,\"loss\":%s}\n", static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), row);
  write("metrics.jsonl", text);
  const TraceFile file = samples::one_microbatch();
  write_chrome_trace(folder_ + "/trace.json.gz", file.ranks);
  const RunFacts facts = run_facts(folder_ + "/trace.json.gz");
  const auto value = [&](const std::string& name) {
    for (const GlanceNumber& number : facts.glance)
      if (number.name == name) return number.value;
    ADD_FAILURE() << name;
    return 0.0;
  };
  EXPECT_EQ(value("steps"), 3);
  EXPECT_EQ(value("loss of the first step"), 9);
  EXPECT_EQ(value("loss of the last step"), 1.5);
  EXPECT_EQ(value("step time"), 4);  // of the steps but the first: 4 and 2, the upper one
  EXPECT_TRUE(std::isnan(value("validation loss, the last one")));
  ASSERT_TRUE(facts.step.has_value());
  EXPECT_EQ(facts.step->window.step, 0);
  EXPECT_GT(value("traffic of a step"), 0);
  EXPECT_EQ(glance_text({"x", "share", 0.125, ""}), "12.50 %");
  EXPECT_EQ(glance_text({"x", "ms", std::nan(""), ""}), "-");
}

}  // namespace
}  // namespace ranklab::viz
