#include "core/base/files/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/base/faulty_file_calls.h"
#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;

const ErrorText kWords = {.where = "test", .what = "cannot write the notes", .fix = "give another path"};
const std::string kOld = "the old content\n", kNew = "something new, and longer than before\n";

class AtomicFiles : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(path_) << kOld;
  }
  std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }
  const std::string folder_ = temporary_path("ranklab_atomic");
  const std::string path_ = folder_ + "/notes";
};

TEST_F(AtomicFiles, AppearAtCommit) {
  {
    AtomicFile file(path_, kWords);
    file.write(kNew);
    EXPECT_EQ(content(), kOld);
    EXPECT_EQ(files(), 2u);
    file.commit();
    EXPECT_EQ(content(), kNew);
  }
  EXPECT_EQ(files(), 1u);
  { AtomicFile(path_, kWords).write("never committed"); }
  EXPECT_EQ(content(), kNew);
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFiles, WhatIsKnownLastIsWrittenOverItsPlace) {
  AtomicFile file(path_, kWords, {.durable = true});
  file.seek(4);
  file.write("body");
  file.seek(0);
  file.write("head");
  file.commit();
  EXPECT_EQ(content(), "headbody");
}

TEST_F(AtomicFiles, TwoWritersOfOnePathDoNotMix) {
  AtomicFile first(path_, kWords), second(path_, kWords);
  first.write("first ");
  second.write("second ");
  first.write("first");
  second.write("second");
  second.commit();
  EXPECT_EQ(content(), "second second");
  first.commit();
  EXPECT_EQ(content(), "first first");
}

TEST_F(AtomicFiles, WhateverCallFailsTheOldOrTheNewFileIsWhole) {
  for (const int reason : {ENOSPC, EIO}) {
    int failures = 0;
    for (int n = 0; n < 100; ++n) {
      std::ofstream(path_) << kOld;
      FaultyCalls faulty(n, reason);
      bool threw = false;
      try {
        write_file_atomically(path_, kNew, kWords, {.durable = true, .calls = &faulty});
      } catch (const Error& error) {
        threw = true;
        EXPECT_EQ(error.kind(), ErrorKind::kIo);
        EXPECT_THAT(error.what(), HasSubstr("[test] cannot write the notes; got '" + path_ + "'"));
        EXPECT_THAT(error.what(), HasSubstr(std::strerror(reason)));
      }
      EXPECT_THAT(content(), AnyOf(kOld, kNew)) << "call " << n << " fails, " << faulty.failed();
      EXPECT_TRUE(threw || content() == kNew) << "call " << n << " fails, " << faulty.failed();
      EXPECT_EQ(files(), 1u) << "call " << n << " fails, " << faulty.failed();
      failures += threw ? 1 : 0;
      if (faulty.failed().empty()) break;
      EXPECT_TRUE(threw || n == 7) << "only closing the folder may fail unseen";
    }
    EXPECT_EQ(failures, 7) << "open, write, sync, close, rename, open the folder, sync it";
  }
}

TEST_F(AtomicFiles, InterruptionsAndShortWritesChangeNothing) {
  HesitantCalls hesitant;
  write_file_atomically(path_, kNew, kWords, {.durable = true, .calls = &hesitant});
  EXPECT_EQ(content(), kNew);
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFiles, APowerCutLeavesTheOldOrTheNewFile) {
  int calls = 1;
  for (int n = 0; n < calls; ++n) {
    CrashDisk disk(path_, kOld, n);
    try {
      AtomicFile file(path_, kWords, {.durable = true, .calls = &disk});
      file.write(kNew.substr(0, 9));
      file.write(kNew.substr(9));
      file.commit();
    } catch (const PowerCut&) {
    }
    EXPECT_THAT(disk.possible(path_), Each(AnyOf(kOld, kNew))) << "power cut before call " << n;
    calls = std::max(calls, disk.made() + 1);
  }
  CrashDisk disk(path_, kOld, -1);
  write_file_atomically(path_, kNew, kWords, {.durable = true, .calls = &disk});
  EXPECT_THAT(disk.possible(path_), Each(kNew)) << "commit() returned, so the new file stays";
}

TEST_F(AtomicFiles, ErrorsNamePathCallAndReason) {
  const auto message = [](const std::string& path) {
    try {
      write_file_atomically(path, kNew, kWords);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("written");
  };
  EXPECT_EQ(message(folder_ + "/absent/notes"), "[test] cannot write the notes; got '" + folder_ +
                                                    "/absent/notes': create: No such file or directory; do: give "
                                                    "another path");
  fs::create_directories(folder_ + "/taken/inside");
  EXPECT_THAT(message(folder_ + "/taken"), HasSubstr("create: Is a directory"));
  EXPECT_EQ(files(), 2u);
}

// The system's own error for a file that grows beyond its size limit.
TEST_F(AtomicFiles, AFullDiskIsToldAndLosesNothing) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message = "written";
  try {
    write_file_atomically(path_, std::string(5000, 'x'), kWords, {.durable = true});
  } catch (const Error& error) {
    message = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("write: File too large"));
  EXPECT_EQ(content(), kOld);
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace ranklab
