// What a sentinel that fires does: a message, a dump, a checkpoint, the end of the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/checkpoint/run_folder.h"
#include "core/checkpoint/safetensors.h"
#include "tests/sentinels/sentinel_run.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

// The gradient norm is above this from the first step on.
TrainConfig firing(const std::string& words) {
  TrainConfig c = watched_config();
  c.sentinels.mode = SentinelMode::kMinimal;
  c.sentinels.rules = "grad_norm " + words;
  return c;
}

TEST(SentinelActions, WarnLetsTheRunGoOn) {
  const SentinelRun run = run_sentinels(firing("warn=1e-6 stop=none"));
  EXPECT_EQ(run.result.steps_done, 6);
  EXPECT_TRUE(run.result.stopped.empty());
  EXPECT_TRUE(run.steps[0]->alarms[0].begins);
  EXPECT_FALSE(run.steps[1]->alarms[0].begins);
  int instants = 0;
  for (const RankTrace& trace : run.result.traces)
    for (const Event& event : trace.events) instants += trace.names[event.name] == "sentinel grad_norm";
  EXPECT_EQ(instants, 6);  // on rank 0's timeline
}

TEST(SentinelActions, StopEndsAllRanksAfterTheStep) {
  for (const char* words : {"warn=1e-6 action=stop", "warn=1e-7 stop=1e-6", "stop=1e-6 in-a-row=1"}) {
    const SentinelRun run = run_sentinels(firing(words));
    EXPECT_EQ(run.result.steps_done, 1) << words;
    EXPECT_THAT(run.result.stopped, testing::HasSubstr("step 0: grad_norm: Gradients/norm is ")) << words;
  }
  EXPECT_EQ(run_sentinels(firing("stop=1e-6 in-a-row=3")).result.steps_done, 3);
}

TEST(SentinelActions, CheckpointSavesTheStateAndAStopAloneSavesNone) {
  const std::string folder = testing::TempDir() + "sentinel_checkpoint";
  for (const bool saves : {true, false}) {
    fs::remove_all(folder);
    TrainConfig c = firing(saves ? "warn=1e-7 stop=1e-6 action=checkpoint" : "stop=1e-6");
    c.save_dir = folder;
    const SentinelRun run = run_sentinels(c);
    EXPECT_EQ(run.result.steps_done, 1);
    EXPECT_EQ(fs::exists(folder + "/" + step_folder_name(1)), saves);
  }
  fs::remove_all(folder);
}

TEST(SentinelActions, CheckpointsAreMeasuredWithTheStepBehindThem) {
  const std::string folder = testing::TempDir() + "sentinel_checkpoint_size";
  fs::remove_all(folder);
  TrainConfig c = firing("warn=none stop=none");
  c.save_dir = folder;
  c.save_interval = 2;
  c.async_save = false;
  const SentinelRun run = run_sentinels(c);
  EXPECT_EQ(run.steps[1]->find("Checkpoint/size_mb"), nullptr);
  ASSERT_NE(run.steps[2]->find("Checkpoint/size_mb"), nullptr);
  // Weights and two moments in fp64, and what the format adds.
  const double least = 3 * 8 * static_cast<double>(c.model.parameter_count()) / (1024 * 1024);
  EXPECT_GT(*run.steps[2]->find("Checkpoint/size_mb"), least);
  EXPECT_LT(*run.steps[2]->find("Checkpoint/size_mb"), 1.5 * least);
  EXPECT_GT(*run.steps[2]->find("Time/checkpoint_seconds"), 0);
  EXPECT_EQ(run.steps[3]->find("Checkpoint/size_mb"), nullptr);
  fs::remove_all(folder);
}

// Except for machine figures, and the window of sequences and the probe before, which no checkpoint has.
bool restarts_at(const std::string& tag) {
  for (const char* group : {"Time/", "Throughput/", "Perf/", "Memory/", "Checkpoint/", "Data/repeated", "Health/step",
                            "Health/memory", "Health/straggler", "Probes/output_kl"})
    if (tag.starts_with(group)) return true;
  return false;
}

TEST(SentinelActions, AResumedRunMeasuresWhatOneThatNeverStoppedDoes) {
  const std::string folder = testing::TempDir() + "sentinel_resume";
  fs::remove_all(folder);
  TrainConfig c = watched_config();
  const SentinelRun never = run_sentinels(c);
  ASSERT_GT(*never.steps[3]->find("Gradients/norm"), *never.steps[4]->find("Gradients/norm"));
  c.clip_grad = *never.steps[3]->find("Gradients/norm");  // some steps are clipped
  const SentinelRun whole = run_sentinels(c);
  TrainConfig part = c;
  part.save_dir = folder;
  part.train_iters = 3;
  run_sentinels(part);
  for (const ParallelDims& layout : {c.parallel, ParallelDims{.world = 2, .tp = 1, .pp = 1}}) {
    TrainConfig rest = c;
    rest.parallel = layout;
    rest.load = folder;
    const SentinelRun resumed = run_sentinels(rest);
    ASSERT_EQ(resumed.steps.size(), 3);
    for (size_t step = 0; step < 3; ++step) {
      for (const SentinelValue& want : whole.steps[3 + step]->values) {
        if (restarts_at(want.tag)) continue;
        const double* got = resumed.steps[step]->find(want.tag);
        ASSERT_NE(got, nullptr) << want.tag << ", step " << step;
        EXPECT_NEAR(*got, want.value, 1e-9 * std::abs(want.value) + 1e-12) << want.tag << ", step " << step;
      }
    }
  }
  fs::remove_all(folder);
}

TEST(SentinelActions, MeasurementsInARowAreCountedOverAResume) {
  const std::string folder = testing::TempDir() + "sentinel_in_a_row";
  fs::remove_all(folder);
  TrainConfig c = firing("warn=none stop=1e-6 in-a-row=5");
  c.save_dir = folder;
  c.train_iters = 3;
  EXPECT_TRUE(run_sentinels(c).result.stopped.empty());
  c.load = "auto";
  c.train_iters = 8;
  EXPECT_EQ(run_sentinels(c).result.steps_done, 5);
  fs::remove_all(folder);
}

TEST(SentinelActions, DumpWritesWhatEachRankOwns) {
  const std::string folder = testing::TempDir() + "sentinel_dump";
  fs::remove_all(folder);
  TrainConfig c = firing("warn=1e-6 stop=none action=dump");
  c.zero_stage = 1;
  run_sentinels(c, {.output = folder});
  int64_t elements = 0;
  for (int rank = 0; rank < 8; ++rank) {
    const SafetensorsFile file(folder + "/dump/sentinel/step-0/rank-" + std::to_string(rank) + ".safetensors");
    EXPECT_THAT(file.metadata().at("coordinates"), testing::HasSubstr("tp "));
    for (const TensorEntry& tensor : file.tensors()) {
      if (!tensor.name.starts_with("exp_avg/")) continue;
      EXPECT_TRUE(file.metadata().contains("slice/" + tensor.name));
      for (int64_t n = 1; const int64_t size : tensor.shape) elements += (n *= size, n);
    }
  }
  EXPECT_GT(elements, 0);
  // Only when it begins to fire.
  EXPECT_FALSE(fs::exists(folder + "/dump/sentinel/step-1"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace ranklab
