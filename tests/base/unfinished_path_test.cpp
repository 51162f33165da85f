// What a process has begun and not finished is removed when a signal ends it, and nothing else.
#include "core/base/files/unfinished_path.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/base/files/atomic_file.h"
#include "core/base/files/temporary_folder.h"
#include "tests/eventually.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

class Unfinished : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  static void end(int signal) {
    remove_unfinished();
    ::raise(signal);
  }
  // Runs `work` in a process that a signal ends, with a handler as the program's.
  template <class Work>
  static void interrupt(const Work& work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      struct sigaction action {};
      action.sa_handler = end;
      action.sa_flags = SA_RESETHAND;
      ::sigaction(SIGTERM, &action, nullptr);
      work();
      ::raise(SIGTERM);
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  fs::path folder_ = fs::path(testing::TempDir()) / ("ranklab_unfinished_" + std::to_string(::getpid()));
};

TEST_F(Unfinished, AFileInTheMiddleIsRemovedAndAWholeOneIsNot) {
  interrupt([&] {
    write_file_atomically(path("whole"), "all of it", {});
    AtomicFile file(path("half"), {});
    file.write("the first half");
    ::raise(SIGTERM);
  });
  EXPECT_TRUE(fs::exists(path("whole")));
  EXPECT_EQ(files(), 1);
}

TEST_F(Unfinished, AFolderIsRemovedWithItsContent) {
  interrupt([&] {
    ::setenv("TMPDIR", folder_.c_str(), 1);
    const TemporaryFolder folder("work", "test");
    fs::create_directories(folder.path() / "inner");
    std::ofstream(folder.path() / "inner" / "file") << "text";
    ::raise(SIGTERM);
  });
  EXPECT_TRUE(eventually([&] { return files() == 0; }));
}

TEST_F(Unfinished, AForkedProcessLeavesItsParentsFilesAlone) {
  AtomicFile file(path("mine"), {});
  file.write("text");
  interrupt([] {});
  EXPECT_EQ(files(), 1);
  file.commit();
  EXPECT_TRUE(fs::exists(path("mine")));
}

TEST_F(Unfinished, MoreFilesThanSlotsAreAllWritten) {
  std::vector<std::unique_ptr<AtomicFile>> all;
  for (int i = 0; i < 200; ++i) all.push_back(std::make_unique<AtomicFile>(path(std::to_string(i)), ErrorText{}));
  for (const auto& file : all) file->commit();
  EXPECT_EQ(files(), 200);
}

}  // namespace
}  // namespace ranklab
