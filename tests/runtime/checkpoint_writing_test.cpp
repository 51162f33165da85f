// When a run writes checkpoints, which it keeps, and that its ranks write each element once.
#include <gmock/gmock.h>

#include "tests/runtime/checkpoint_run.h"

namespace ranklab::checkpoint_runs {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

TEST(Checkpoints, AreKeptToldAndPruned) {
  const std::string run = temporary_path("ranklab_kept");
  const Settings settings = kOne + saving(run, 2) + Settings{{"checkpoint.keep_last", "2"}};
  for (const char* async : {"true", "false"}) {
    const auto record = train(settings + Settings{{"checkpoint.async", async}});
    std::vector<int64_t> told, kept;
    for (const CheckpointNote& note : record->notes) {
      told.push_back(note.step);
      EXPECT_GT(note.bytes, 100'000);
      EXPECT_GT(note.written_ms, 0);
    }
    for (const StepFolder& folder : step_folders(run)) kept.push_back(folder.step);
    EXPECT_THAT(told, ElementsAre(2, 4, 6));
    EXPECT_THAT(kept, ElementsAre(6, 4));
    EXPECT_EQ(Checkpoint(run + "/step_00000006").manifest().consumed_samples, 48);
    fs::remove_all(run);
  }
}

// Elements in a checkpoint's files, less those of its tensors: copies that were written more than once.
int64_t elements_too_many(const Checkpoint& checkpoint) {
  int64_t sum = 0;
  for (const auto& [name, file] : checkpoint.files()) {
    for (const TensorEntry& tensor : file->tensors()) sum += static_cast<int64_t>(tensor.elements());
  }
  for (const auto& [name, tensor] : checkpoint.manifest().tensors) sum -= shape_elements(tensor.shape);
  return sum;
}

TEST(Checkpoints, NothingIsWrittenTwice) {
  const Settings four = kTinyRun + Settings{{"parallel.world_size", "4"}};
  const Settings zero = {{"parallel.zero_stage", "2"}}, groups = {{"parallel.replicas", "2"}};
  const std::vector<Settings> all = {
      four + kDense + Settings{{"parallel.tp", "2"}, {"model.vocab_size", "256"}},
      four + kDense + zero,
      four + kDense + zero + groups,
      four + kMoe + zero + groups,
      four + kMoe + zero + groups + Settings{{"parallel.ep", "2"}},
      four + kDense + Settings{{"diloco.sync_steps", "2"}, {"diloco.replicas", "2"}},
      four + kMoe + zero + Settings{{"diloco.sync_steps", "2"}, {"diloco.replicas", "2"}, {"parallel.ep", "2"}},
      four + kDense +
          Settings{{"parallel.pp", "2"}, {"parallel.pipeline_schedule", "dualpipe"}, {"train.num_microbatches", "4"}}};
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string run = temporary_path("ranklab_once" + std::to_string(i));
    train(all[i] + saving(run), 1);
    EXPECT_EQ(elements_too_many(Checkpoint(checkpoint_named(run))), 0) << i;
  }
}

TEST(Checkpoints, DataParallelRanksShareTheWriting) {
  const std::string run = temporary_path("ranklab_shared");
  train(kTinyRun + kDense + Settings{{"parallel.world_size", "4"}, {"parallel.dp", "4"}} + saving(run), 1);
  const Checkpoint checkpoint(checkpoint_named(run));
  ASSERT_EQ(checkpoint.files().size(), 4);
  for (const auto& [name, file] : checkpoint.files()) EXPECT_GT(file->tensors().size(), 12) << name;  // of 66
}

TEST(Checkpoints, TheStallIsOnTheTimelineOfEveryRank) {
  const Settings two = kTinyRun + kDense + Settings{{"parallel.world_size", "2"}, {"parallel.dp", "2"}};
  const auto record = train(two + saving(temporary_path("ranklab_timeline"), 2) + Settings{{"trace.enabled", "true"}});
  ASSERT_EQ(record->traces.size(), 2);
  for (const RankTrace& trace : record->traces) {
    std::vector<int> steps;
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kPhase && trace.names.at(event.name) == "checkpoint") steps.push_back(event.step);
    }
    EXPECT_THAT(steps, ElementsAre(1, 3, 5));
  }
}

}  // namespace
}  // namespace ranklab::checkpoint_runs
