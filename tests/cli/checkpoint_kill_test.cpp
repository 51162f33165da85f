// kill -9 at random instants: of a run that saves now and then, which must resume as if nothing had happened, and of
// one that saves all the time, which must never lose a finished checkpoint. RANKLAB_KILLS sets how many (12 and 20; 40
// and 50 with RANKLAB_ALL_CASES=1).
#include <random>

#include "tests/all_cases.h"
#include "tests/cli/checkpoint_runs.h"
#include "tests/eventually.h"

namespace ranklab::checkpoint_runs {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

int kills_wanted(int otherwise) {
  const char* text = std::getenv("RANKLAB_KILLS");
  return text != nullptr ? std::atoi(text) : otherwise;
}

void sleep_ms(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

class CheckpointKill : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  Words words(const std::string& name, const Words& more) const {
    return kTinyTraining + Words{"--log-dir", folder_ + "/log_" + name, "--save", folder_ + "/ck_" + name} + more;
  }
  std::string output() const { return folder_ + "/output"; }
  const std::string folder_ = temporary_path("ranklab_kill");
};

TEST_F(CheckpointKill, ARunThatIsKilledAgainAndAgainHasTheCurveOfOneThatIsNot) {
  const Words steps = {"--train-iters", "60", "--save-interval", "5", "--keep-last", "2", "--load", "auto"};
  const auto begin = Clock::now();
  ASSERT_EQ(Child("train", words("whole", steps), output()).finish(), 0) << text_of(output());
  const double whole_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  const std::vector<uint64_t> want = loss_bits(folder_ + "/log_whole");
  ASSERT_EQ(want.size(), 60);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> instant(0, whole_ms);
  const int wanted = kills_wanted(all_cases() ? 40 : 12);
  int kills = 0, runs = 0, resumed = 0;
  while (kills < wanted) {
    const std::string name = "run" + std::to_string(runs++);
    bool finished = false;
    for (int in_this_run = 0; !finished; ++in_this_run) {
      const bool last = in_this_run == 8 || kills == wanted;
      resumed += sound_checkpoints(folder_ + "/ck_" + name) > 0 ? 1 : 0;
      Child child("train", words(name, steps), output());
      // However slow the machine has become, every other one comes when there is a checkpoint to go on from.
      if (!last && kills % 2 == 1)
        eventually([&] { return child.ended() || !step_folders(folder_ + "/ck_" + name).empty(); });
      if (!last) sleep_ms(kills % 2 == 1 ? instant(random) / 2 : instant(random));
      const int code = child.finish(last ? 0 : SIGKILL);
      finished = code == 0;
      if (finished) continue;
      ASSERT_EQ(code, 128 + SIGKILL) << text_of(output());
      ++kills;
    }
    EXPECT_EQ(loss_bits(folder_ + "/log_" + name), want) << name << " after " << kills << " kills";
    const CheckpointDifference diff = diff_checkpoints(Checkpoint(checkpoint_named(folder_ + "/ck_whole")),
                                                       Checkpoint(checkpoint_named(folder_ + "/ck_" + name)));
    EXPECT_TRUE(diff.same()) << name;
    for (const auto& entry : fs::directory_iterator(folder_ + "/ck_" + name))
      EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path();
  }
  EXPECT_GT(resumed, 0);  // the instants were not all before the first checkpoint
  std::printf("%d kills of %d runs, %d starts from a checkpoint\n", kills, runs, resumed);
}

TEST_F(CheckpointKill, ARunThatSavesAllTheTimeLosesNoCheckpoint) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> instant(0, 60);
  const int wanted = kills_wanted(all_cases() ? 50 : 20);
  int64_t newest = 0;
  int interrupted = 0;
  for (int kill = 0; kill < wanted; ++kill) {
    const Words how = {"--train-iters",
                       "1000000",
                       "--save-interval",
                       "1",
                       "--keep-last",
                       "2",
                       "--load",
                       "auto",
                       kill % 2 == 0 ? "--async-save" : "--no-async-save"};
    Child child("train", words("saving", how), output());
    const std::string run = folder_ + "/ck_saving";
    while (step_folders(run).empty() || step_folders(run)[0].step <= newest) {
      ASSERT_FALSE(child.ended()) << text_of(output());
      sleep_ms(1);
    }
    sleep_ms(instant(random));
    ASSERT_EQ(child.finish(SIGKILL), 128 + SIGKILL);
    for (const auto& entry : fs::directory_iterator(run)) {
      if (entry.path().filename().string().starts_with(".")) ++interrupted;  // a save that was under way
    }
    ASSERT_GT(sound_checkpoints(run), 0) << "every checkpoint is gone";
    const int64_t step = step_folders(run)[0].step;
    ASSERT_GT(step, newest);
    newest = step;
  }
  EXPECT_GT(interrupted, 0);
  std::printf("%d kills, %d left a save or a removal half done; step %lld\n", wanted, interrupted,
              static_cast<long long>(newest));
}

}  // namespace
}  // namespace ranklab::checkpoint_runs
