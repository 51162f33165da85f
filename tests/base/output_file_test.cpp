#include "core/base/files/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFiles : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/in");
    for (const char* name : {"/theirs", "/own", "/in/part"}) std::ofstream(folder_ + name) << name;
  }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::string refusal(const std::string& name, bool force) const {
    try {
      check_output({.path = name.empty() ? name : at(name),
                    .option = "--out",
                    .inputs = {at("in"), at("theirs_in"), "no such path"},
                    .own = [&] { return begins_with(at(name), "/own"); },
                    .force = force});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.what();
    }
    return "";
  }
  const std::string folder_ = temporary_path("ranklab_output");
};

TEST_F(OutputFiles, NewOnesAndOnesOwnAreWritten) {
  EXPECT_EQ(refusal("new", false), "");
  EXPECT_EQ(refusal("own", false), "");
  EXPECT_EQ(refusal("no/folder/new", false), "");  // writing says what is missing
}

TEST_F(OutputFiles, OthersNeedForce) {
  EXPECT_THAT(refusal("theirs", false), HasSubstr("--force"));
  EXPECT_EQ(refusal("theirs", true), "");
}

TEST_F(OutputFiles, InputsAreNeverWrittenOver) {
  fs::create_hard_link(at("theirs"), at("theirs_in"));
  fs::create_directory_symlink(at("in"), at("way"));
  for (const char* input : {"in/part", "theirs", "theirs_in", "way/part", "in/../in/part"})
    EXPECT_THAT(refusal(input, true), HasSubstr("an input of the same command")) << input;
  EXPECT_EQ(refusal("in/new", false), "");
}

TEST_F(OutputFiles, WhatIsNoRegularFileIsNeverWrittenOver) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  fs::create_symlink("own", at("link"));
  fs::create_symlink("nowhere", at("loose"));
  EXPECT_THAT(refusal("pipe", true), HasSubstr("a pipe"));
  EXPECT_THAT(refusal("link", true), HasSubstr("a symbolic link"));
  EXPECT_THAT(refusal("loose", true), HasSubstr("a symbolic link"));
  EXPECT_THAT(refusal("in", true), HasSubstr("a folder"));
  EXPECT_THAT(refusal("", true), HasSubstr("the file name is empty"));
  EXPECT_THROW(check_output({.path = "/dev/null", .option = "--out", .force = true}), Error);
}

// Files whose names no option gives, for example those in a run's folder.
TEST_F(OutputFiles, AnAtomicFileLeavesAPipeInItsPlace) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", at("link"));
  for (const char* name : {"pipe", "link"}) {
    try {
      write_file_atomically(at(name), "text", {.where = "test", .what = "cannot write", .fix = "another path"});
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      EXPECT_THAT(error.what(), HasSubstr("a pipe"));
    }
  }
  EXPECT_TRUE(fs::is_fifo(at("pipe")) && fs::is_symlink(at("link")));
}

}  // namespace
}  // namespace ranklab
