// A checkpoint written by two ranks and read in other partitions, and how a run's folder treats several checkpoints.
#include "core/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <utility>

#include "core/checkpoint/checkpoint_diff.h"
#include "core/checkpoint/run_lock.h"
#include "tests/checkpoint/checkpoint_files.h"

namespace ranklab::checkpoint_samples {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override { make_run_folder(run_); }
  void TearDown() override { fs::remove_all(run_); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(run_)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  const std::string run_ = temporary_path("ranklab_checkpoint") + "/deep/run";
};

TEST_F(CheckpointTest, IsReadWhole) {
  const Checkpoint checkpoint(save_two_ranks(run_, 40, 100));
  EXPECT_EQ(checkpoint.manifest().step, 40);
  EXPECT_EQ(checkpoint.manifest().consumed_samples, 320);
  EXPECT_EQ(checkpoint.manifest().config.at("k"), "v");
  EXPECT_EQ(read_floats(checkpoint, "weight/w"), values_from(100, 12));
  EXPECT_EQ(read_floats(checkpoint, "exp_avg/w"), values_from(0, 12));
  EXPECT_THAT(read_floats(checkpoint, "weight/b"), ElementsAre(100, -100));
  EXPECT_EQ(bytes_of(run_ + "/latest"), "step_00000040\n");
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000040"));
}

TEST_F(CheckpointTest, IsReadInAnotherCutWithPaddingZero) {
  const Checkpoint checkpoint(save_two_ranks(run_, 1, 0));
  const TensorSlice slice{.partition = {.dim = 0, .ranges = {{1, 2}, {3, 5}}}, .begin = 1, .end = 9};
  std::vector<float> out(8, -1);
  checkpoint.read("weight/w", slice, std::as_writable_bytes(std::span(out)));
  EXPECT_THAT(out, ElementsAre(4, 5, 9, 10, 11, 0, 0, 0));
  EXPECT_THROW(checkpoint.read("weight/w", slice, std::as_writable_bytes(std::span(out).first(7))), Error);
  EXPECT_THROW(checkpoint.read("weight/w", {.end = 13}, std::as_writable_bytes(std::span(out))), Error);
  try {
    checkpoint.read("weigth/w");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'weight/w'"));
  }
}

TEST_F(CheckpointTest, CopiesOfAPieceAreKeptOnce) {
  CheckpointWriter writer(run_, 3, "a");
  CheckpointManifest whole = write_two_ranks(writer, 3, 0);
  CheckpointManifest copy = whole;
  copy.files = {};
  merge_part(whole, copy, "test");
  EXPECT_EQ(whole.tensors, copy.tensors);
  whole.tensors["weight/w"].slices.pop_back();
  EXPECT_THROW(writer.publish(whole), Error);  // it could not be read again
  copy.tensors["weight/b"].shape = {3};
  EXPECT_THROW(merge_part(whole, copy, "test"), Error);
}

TEST_F(CheckpointTest, PartsOfOtherProcessesAreFoundWhole) {
  CheckpointWriter writer(run_, 3, "a"), other(run_, 3, "a");
  const CheckpointManifest part = write_two_ranks(other, 3, 5);
  EXPECT_FALSE(writer.find_part(1).has_value());
  other.leave_part(1, part);
  ASSERT_TRUE(writer.find_part(1).has_value());
  EXPECT_EQ(*writer.find_part(1), part);
  writer.publish(part);
  EXPECT_FALSE(fs::exists(writer.published_folder() + "/rank_00001.json"));
  EXPECT_EQ(checkpoint_refusal(writer.published_folder()), "");
}

TEST_F(CheckpointTest, AProcessThatFailsLeavesNoEmptyFolderAndTheOthersFiles) {
  CheckpointWriter writer(run_, 3, "a"), other(run_, 3, "a");
  other.begin();
  other.leave_no_empty_folder();
  EXPECT_FALSE(fs::exists(writer.temporary_folder()));
  write_two_ranks(writer, 3, 5);
  other.leave_no_empty_folder();
  EXPECT_TRUE(fs::exists(writer.temporary_folder() + "/rank_00000.safetensors"));
}

// Another process fails between begin() and the file: its error is the one to report.
TEST_F(CheckpointTest, AFolderThatAnotherProcessRemovesIsMadeAgain) {
  struct RemovesOnce : FileCalls {
    int open(const char* path, int flags, int mode) override {
      if (!std::exchange(done, true)) ::rmdir(fs::path(path).parent_path().c_str());
      return FileCalls::open(path, flags, mode);
    }
    bool done = false;
  } calls;
  CheckpointWriter writer(run_, 3, "a", calls);
  writer.publish(write_two_ranks(writer, 3, 5));
  EXPECT_TRUE(calls.done);
  EXPECT_EQ(checkpoint_refusal(writer.published_folder()), "");
}

TEST_F(CheckpointTest, TheSameStepIsReplaced) {
  save_two_ranks(run_, 7, 1);
  save_two_ranks(run_, 7, 2);
  EXPECT_EQ(read_floats(Checkpoint(run_ + "/step_00000007"), "weight/w"), values_from(2, 12));
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000007"));
}

TEST_F(CheckpointTest, OldOnesArePrunedAndLeftoversRemoved) {
  for (const int64_t step : {10, 20, 30, 50}) save_two_ranks(run_, step, 1);
  prune(run_, 30, 2);  // the one of step 50 is not this run's to judge
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000020", "step_00000030", "step_00000050"));
  fs::create_directory(run_ + "/.saving-step_00000060-x");
  put_bytes(run_ + "/.saving-step_00000060-x/rank_00000.safetensors", "half");
  fs::create_directory(run_ + "/.old-step_00000010");
  put_bytes(run_ + "/latest.part17.0", "");
  fs::create_directory(run_ + "/.saving-mine");
  fs::create_directory(run_ + "/.saving-mine/sub");  // a stranger's: not followed
  remove_leftovers(run_);
  EXPECT_THAT(names(), ElementsAre(".saving-mine", "latest", "step_00000020", "step_00000030", "step_00000050"));
}

TEST_F(CheckpointTest, FoldersAreListedNewestFirstAndLinksPassedOver) {
  for (const int64_t step : {9, 100000000, 10}) save_two_ranks(run_, step, 1);
  fs::create_directory(run_ + "/step_11");
  fs::create_directory_symlink("step_00000009", run_ + "/step_00000012");
  std::vector<int64_t> steps;
  for (const StepFolder& folder : step_folders(run_)) steps.push_back(folder.step);
  EXPECT_THAT(steps, ElementsAre(100000000, 10, 9));
  EXPECT_EQ(checkpoint_named(run_), run_ + "/step_100000000");
  EXPECT_EQ(checkpoint_named(run_ + "/step_00000009"), run_ + "/step_00000009");
  EXPECT_THROW(checkpoint_named(run_ + "/step_11"), Error);
  EXPECT_THROW(checkpoint_named(run_ + "/none"), Error);
}

// Circular links and names that are too long cannot be accessed by root either.
TEST_F(CheckpointTest, WhatMayNotBeLookedAtIsNotCalledAbsent) {
  const auto refusal = [](const std::string& path) {
    try {
      checkpoint_named(path);
      return std::string("found");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      return std::string(error.what());
    }
  };
  fs::create_directories(run_ + "/inside");
  fs::create_symlink("circle", run_ + "/circle");
  EXPECT_THAT(refusal(run_ + "/circle"), HasSubstr("Too many levels of symbolic links"));
  EXPECT_THAT(refusal(run_ + "/" + std::string(300, 'x')), HasSubstr("File name too long"));
  fs::create_symlink("manifest.json", run_ + "/inside/manifest.json");
  EXPECT_THAT(refusal(run_ + "/inside"), AllOf(HasSubstr("manifest.json"), HasSubstr("Too many levels")));
  EXPECT_THAT(refusal(run_ + "/none"), HasSubstr("there is no folder of that name"));
  if (::geteuid() == 0) return;  // who may read everything
  save_two_ranks(run_, 10, 1);
  for (const fs::perms left : {fs::perms::none, fs::perms::owner_read, fs::perms::owner_exec}) {
    fs::permissions(run_, left);
    EXPECT_THAT(refusal(run_), HasSubstr("Permission denied"));
  }
  fs::permissions(run_, fs::perms::owner_all);
}

TEST_F(CheckpointTest, OneRunHasTheFolder) {
  {
    const RunLock lock(run_);
    try {
      const RunLock second(run_);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("pid " + std::to_string(::getpid())), HasSubstr("started")));
    }
  }
  const RunLock again(run_);
}

// Several starters at the same moment: the kernel chooses one.
TEST_F(CheckpointTest, OfManyStartersOneWins) {
  constexpr int kRounds = 20, kStarters = 10;
  for (int round = 0; round < kRounds; ++round) {
    int start[2], end[2];
    ASSERT_EQ(::pipe(start) | ::pipe(end), 0);
    std::vector<pid_t> pids;
    for (int i = 0; i < kStarters; ++i) {
      const pid_t pid = ::fork();
      if (pid != 0) {
        pids.push_back(pid);
        continue;
      }
      ::close(start[1]);
      ::close(end[1]);
      char byte = 0;
      while (::read(start[0], &byte, 1) > 0) continue;  // until the parent lets all go
      try {
        const RunLock lock(run_);
        while (::read(end[0], &byte, 1) > 0) continue;
        ::_exit(0);
      } catch (const Error& error) {
        ::_exit(error.kind() == ErrorKind::kInvalidArgument ? 2 : 3);
      }
    }
    ::close(start[0]);
    ::close(end[0]);
    ::close(start[1]);
    int refused = 0, won = 0;
    // The winner ends last: it waits for the pipe that is closed when all others have been refused.
    for (int i = 0; i < kStarters - 1; ++i) {
      int status = 0;
      ASSERT_GT(::waitpid(-1, &status, 0), 0);
      refused += WEXITSTATUS(status) == 2 ? 1 : 0;
    }
    ::close(end[1]);
    int status = 0;
    ASSERT_GT(::waitpid(-1, &status, 0), 0);
    won += WEXITSTATUS(status) == 0 ? 1 : 0;
    EXPECT_EQ(refused, kStarters - 1);
    EXPECT_EQ(won, 1);
  }
}

TEST_F(CheckpointTest, DifferencesAreThoseOfTheWholeModel) {
  const Checkpoint a(save_two_ranks(run_, 7, 1));
  CheckpointWriter writer(run_, 8, "one");
  writer.begin();
  std::vector<float> w = values_from(1, 12), m = values_from(0, 12), b = {1, -1};
  const auto bytes = [](const std::vector<float>& values) { return std::as_bytes(std::span(values)); };
  w[5] += 1;
  const std::vector<PieceToWrite> pieces = {
      {.tensor = "weight/w", .shape = {4, 3}, .slice = {.end = 12}, .bytes = bytes(w)},
      {.tensor = "exp_avg/w", .shape = {4, 3}, .slice = {.end = 12}, .bytes = bytes(m)},
      {.tensor = "weight/b", .shape = {2}, .slice = {.end = 2}, .bytes = bytes(b)}};
  CheckpointManifest whole{.step = 7, .updates = 7, .consumed_samples = 57};
  merge_part(whole, writer.write_file(0, pieces), "test");
  writer.publish(whole);
  const CheckpointDifference diff = diff_checkpoints(a, Checkpoint(writer.published_folder()));
  ASSERT_EQ(diff.tensors.size(), 1);
  EXPECT_EQ(diff.tensors[0].name, "weight/w");
  EXPECT_EQ(diff.tensors[0].differing, 1);
  EXPECT_THAT(diff.tensors[0].first, ElementsAre(1, 2));
  EXPECT_EQ(diff.same_tensors, 2);
  EXPECT_THAT(diff.progress, ElementsAre("consumed samples: 56 in a, 57 in b"));
  EXPECT_THAT(diff.settings, ElementsAre("k", "layout"));
  EXPECT_TRUE(diff_checkpoints(a, a).same());
}

}  // namespace
}  // namespace ranklab::checkpoint_samples
