#include "core/runtime/run_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
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
  engine.add_hook(make_trace_file_hook(directory, engine.plan()));
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
  ASSERT_EQ(metrics.size(), 2u);
  const auto second = nlohmann::json::parse(metrics[1]);
  EXPECT_EQ(second.at("step"), 1);
  EXPECT_EQ(second.at("loss").get<double>(), recorded->steps[1].loss);
  EXPECT_EQ(second.at("grad_norm").get<double>(), recorded->steps[1].grad_norm);
  for (const char* key : {"lr", "tokens_per_s", "virtual_step_ms", "mfu", "exposed_comm_fraction"})
    EXPECT_TRUE(second.contains(key)) << key;
  EXPECT_GT(std::filesystem::file_size(trace_path(directory)), 1000u);
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
