#include "core/runtime/record/run_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/runtime/record/trace_file.h"
#include "core/trace/find_trace.h"
#include "tests/cli/run_program.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

std::vector<std::string> lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST(RunLog, WritesLossLinesMetricsAndTheTrace) {
  const std::string directory = testing::TempDir() + "/ranklab_run_log_test" + std::to_string(::getpid());
  std::filesystem::remove_all(directory);
  TrainConfig config = tiny_config(4, 2);
  config.train_iters = 2;
  config.eval_interval = 2;
  RuntimeEngine engine = tiny_engine(config);
  engine.add_hook(make_run_log_hook(directory));
  engine.add_hook(std::make_shared<TraceWriterHook>(directory, engine.plan()));
  const auto recorded = std::make_shared<RecordingHook>();
  engine.add_hook(recorded);
  engine.fit();

  const auto log = lines(directory + "/log.txt");
  ASSERT_EQ(log.size(), 3u);
  char want[64];
  std::snprintf(want, sizeof want, "1 train %.6f", recorded->steps[1].loss);
  EXPECT_EQ(log[1], want);
  std::snprintf(want, sizeof want, "1 val %.6f", recorded->validation_losses[0]);
  EXPECT_EQ(log[2], want);

  const auto metrics = lines(directory + "/metrics.jsonl");
  ASSERT_EQ(metrics.size(), 3u);
  const auto second = nlohmann::json::parse(metrics[1]);
  EXPECT_EQ(nlohmann::json::parse(metrics[2]),
            (nlohmann::json{{"step", 1}, {"validation_loss", recorded->validation_losses[0]}}));
  EXPECT_EQ(second.at("step"), 1);
  EXPECT_EQ(second.at("loss").get<double>(), recorded->steps[1].loss);
  EXPECT_EQ(second.at("grad_norm").get<double>(), recorded->steps[1].grad_norm);
  for (const char* key : {"lr", "tokens_per_s", "virtual_step_ms", "mfu", "exposed_comm_fraction"})
    EXPECT_TRUE(second.contains(key)) << key;
  EXPECT_GT(std::filesystem::file_size(trace_path(directory)), 1000u);
}

// The second would truncate the first one's curve, and both would end with exit code 0.
TEST(RunLog, TwoRunsNeverShareAFolder) {
  const std::string directory = temporary_path("ranklab_run_log_shared");
  const auto first = make_run_log_hook(directory);
  first->on_train_begin(resolve(tiny_config(1, 1)), {});
  first->on_step_end({.step = 0, .loss = 1.5});
  try {
    make_run_log_hook(directory);
    ADD_FAILURE() << "a second run logs there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    for (const std::string& part : {std::string("another run logs into"), "pid " + std::to_string(::getpid()),
                                    std::string("pass another folder with --log-dir")})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
  EXPECT_EQ(lines(directory + "/log.txt"), std::vector<std::string>{"0 train 1.500000"});
}

TEST(RunLog, RunsThatBeginInTheSameSecondHaveTheirOwnFolders) {
  const std::filesystem::path here = std::filesystem::current_path();
  const std::string place = testing::TempDir() + "/ranklab_default_log_dir" + std::to_string(::getpid());
  std::filesystem::create_directories(place);
  std::filesystem::current_path(place);
  std::vector<std::string> folders(32);
  std::vector<std::thread> runs;
  for (std::string& folder : folders) runs.emplace_back([&folder] { folder = default_log_dir(); });
  for (std::thread& run : runs) run.join();
  std::filesystem::current_path(here);
  std::filesystem::remove_all(place);
  EXPECT_EQ(std::set<std::string>(folders.begin(), folders.end()).size(), folders.size());
}

// "last" is the last run wherever it logs; no folder "runs" is created for that.
TEST(RunLog, TheLastRunIsFoundWhereverItLogs) {
  namespace fs = std::filesystem;
  const fs::path here = fs::current_path(), place = temporary_path("ranklab_last_run");
  fs::create_directories(place);
  fs::current_path(place);
  make_run_log_hook("elsewhere");
  EXPECT_FALSE(fs::exists("runs"));
  for (const std::string& folder : {default_log_dir(), std::string("runs/named"), std::string("elsewhere")}) {
    make_run_log_hook(folder);
    EXPECT_TRUE(fs::equivalent("runs/last", folder)) << folder << ", " << fs::read_symlink("runs/last");
  }
  make_run_log_hook("runs/last");  // as it is named when it goes on
  EXPECT_TRUE(fs::equivalent("runs/last", "elsewhere"));
  fs::current_path(here);
  fs::remove_all(place);
}

TEST(RunLog, ARunThatGoesOnKeepsTheLinesBeforeIt) {
  const std::string directory = temporary_path("ranklab_run_log_resumed");
  const RunPlan plan = resolve(tiny_config(1, 1));
  for (const int64_t first : {3, 0}) {
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/log.txt") << "0 train 5\n1 train 4\n1 val 4\n2 train 3\n3 train 2\n30 train 1\n2 tra";
    std::ofstream(directory + "/metrics.jsonl")
        << "{\"step\":1}\n{\"step\":1,\"validation_loss\":4}\nno "
           "line\n{\"step\":2}\n{\"step\":2,\"checkpoint\":3}\n{\"step\":3}\n{\"step\":2,";
    const auto hook = make_run_log_hook(directory);
    EXPECT_EQ(lines(directory + "/log.txt").size(), 7u);  // until it is known where the run begins
    TrainInfo info;
    info.first_step = first;
    hook->on_train_begin(plan, info);
    hook->on_step_end({.step = first, .loss = 1.5});
    hook->on_checkpoint({.step = first + 1, .bytes = 10});
    const auto log = lines(directory + "/log.txt"), metrics = lines(directory + "/metrics.jsonl");
    const std::vector<std::string> kept = {"0 train 5", "1 train 4", "1 val 4", "2 train 3", "3 train 1.500000"};
    EXPECT_EQ(log, first == 3 ? kept : std::vector<std::string>{"0 train 1.500000"});
    ASSERT_EQ(metrics.size(), first == 3 ? 6u : 2u);
    EXPECT_EQ(nlohmann::json::parse(metrics[metrics.size() - 2]).at("loss"), 1.5);
    EXPECT_EQ(nlohmann::json::parse(metrics.back()).at("checkpoint"), first + 1);
    EXPECT_EQ(nlohmann::json::parse(metrics.back()).at("step"), first);
  }
}

// The loss scale of each step, and how many updates were left out; an infinite norm is null.
TEST(RunLog, TellsTheLossScaleAndSkippedSteps) {
  const std::string directory = temporary_path("ranklab_scale_log");
  TrainConfig config = tiny_config(2, 1);
  config.precision.fp16 = true;
  config.precision.initial_loss_scale = 16777216;
  RuntimeEngine engine = tiny_engine(config);
  engine.add_hook(make_run_log_hook(directory));
  const TrainResult result = engine.fit(2);
  const auto metrics = lines(directory + "/metrics.jsonl");
  ASSERT_EQ(metrics.size(), 2u);
  const auto first = nlohmann::json::parse(metrics[0]), second = nlohmann::json::parse(metrics[1]);
  EXPECT_EQ(first.at("loss_scale"), 16777216);
  EXPECT_TRUE(first.at("grad_norm").is_null());
  EXPECT_EQ(first.at("skipped_steps"), 1);
  EXPECT_EQ(second.at("loss_scale"), 8388608);
  for (const RankTrace& trace : result.traces) {
    std::vector<double> scales;
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kCounter && trace.names[event.name] == "loss scale") scales.push_back(event.value);
    }
    EXPECT_EQ(scales, (std::vector<double>{16777216, 8388608})) << "rank " << trace.global_rank;
  }
}

TEST(RunLog, AFolderThatCannotBeMadeIsNamed) {
  const std::string file = testing::TempDir() + "/ranklab_not_a_folder" + std::to_string(::getpid());
  std::ofstream(file) << "x";
  try {
    make_run_log_hook(file);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find(file), std::string::npos);
  }
}

}  // namespace
}  // namespace ranklab
