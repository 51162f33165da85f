// The libraries that the program opens: a damaged or unreadable one is named, and what lies in the current folder is
// none of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their libraries are linked in other ways
class Libraries : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(here_);
    fs::copy_file(RANKLAB_BINARY, here_ / "ranklab");
  }
  void TearDown() override { fs::remove_all(here_); }

  // A command that opens LibTorch, of the program in `here_` or of the one that was built.
  Outcome open_libtorch(const std::string& before, const std::string& program = "./ranklab") const {
    return run_command("cd '" + here_.string() + "' && " + before + " '" + program +
                       "' launch --nproc-per-node 1 -- true 2>&1");
  }
  // The first `bytes` of the training library, as a file of that name.
  void cut_copy(const std::string& name, size_t bytes) const {
    std::ifstream in(kTraining, std::ios::binary);
    std::string content(bytes, '\0');
    in.read(content.data(), static_cast<std::streamsize>(bytes));
    fs::create_directories((here_ / name).parent_path());
    std::ofstream(here_ / name, std::ios::binary).write(content.data(), in.gcount());
  }
  void expect_refusal(const Outcome& run, const std::string& words) const {
    EXPECT_EQ(run.exit_code, 3) << run.output;
    EXPECT_THAT(run.output, HasSubstr("error: [module training] " + words));
  }

  const fs::path here_ = temporary_path("ranklab_libraries");
  const fs::path kTraining = fs::path(RANKLAB_BINARY).parent_path() / "libranklab_training.so";
  // A user who may not read everything, as root may.
  const std::string no_root_ = "setpriv --bounding-set=-dac_override,-dac_read_search";
};

TEST_F(Libraries, AreNotTakenFromTheCurrentFolder) {
  for (const char* name : {"libgloo.so.0", "libcrypto.so.3", "libtorch_cpu.so", "libc10.so"})
    std::ofstream(here_ / name) << "not a library";
  const Outcome run = open_libtorch("", RANKLAB_BINARY);
  EXPECT_EQ(run.exit_code, 0) << run.output;
}

// The loader would be killed by SIGBUS.
TEST_F(Libraries, ThatAreCutOffAreNamedWithBothSizes) {
  const std::string whole = std::to_string(fs::file_size(kTraining));
  for (const size_t bytes : {0, 10, 100'000, 5'000'000}) {
    cut_copy("libranklab_training.so", bytes);
    const Outcome run = open_libtorch("");
    expect_refusal(run, "a library that this command needs is cut off; got '");
    EXPECT_THAT(run.output, HasSubstr("libranklab_training.so': " + std::to_string(bytes) + " bytes; want " +
                                      (bytes < 64 ? "64" : whole) + " bytes or more; do: ./ranklab build"));
  }
  fs::remove(here_ / "libranklab_training.so");
  fs::create_symlink(kTraining, here_ / "libranklab_training.so");
  cut_copy("other/libc10.so", 100'000);
  const Outcome needed = open_libtorch("LD_LIBRARY_PATH=other");
  expect_refusal(needed, "a library that this command needs is cut off; got 'other/libc10.so': 100000 bytes; want " +
                             whole + " bytes or more; do: install that library again");
}

TEST_F(Libraries, ThatMayNotBeReadAreNotReportedAsMissing) {
  fs::copy_file(kTraining, here_ / "libranklab_training.so");
  fs::permissions(here_ / "libranklab_training.so", fs::perms::none);
  const Outcome run = open_libtorch(no_root_);
  expect_refusal(run, "a library that this command needs cannot be read; got '");
  EXPECT_THAT(run.output, HasSubstr("libranklab_training.so': Permission denied; want a file that you may read; do: "));
}

// The loader goes on to the next folder.
TEST_F(Libraries, ThatMayNotBeReadDoNoHarmWhereAnotherCopyIs) {
  fs::create_symlink(kTraining, here_ / "libranklab_training.so");
  cut_copy("other/libc10.so", 100);
  fs::permissions(here_ / "other" / "libc10.so", fs::perms::none);
  const Outcome run = open_libtorch("LD_LIBRARY_PATH=other " + no_root_);
  EXPECT_EQ(run.exit_code, 0) << run.output;
}

TEST_F(Libraries, OfAnotherKindAreReportedInTheLoadersWords) {
  std::ofstream(here_ / "libranklab_training.so") << std::string(1000, 'x');
  expect_refusal(open_libtorch(""), "this command's module is there, but cannot be loaded; got ");
}
#endif

}  // namespace
}  // namespace ranklab
