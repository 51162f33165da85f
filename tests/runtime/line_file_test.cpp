#include "core/runtime/record/line_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(LineFiles, HoldWholeLinesAloneAlsoWhenTheDiskIsFull) {
  const std::string path = temporary_path("ranklab_line_file");
  LineFile file(path, LineFile::Begin::kEmpty);
  EXPECT_EQ(file.add("first"), "");
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {10, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string refused = file.add("second: four bytes fit");
  const std::string fits = file.add("abc");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(refused, "File too large");
  EXPECT_EQ(fits, "") << "tried again: there may be room meanwhile";
  EXPECT_EQ(content(path), "first\nabc\n");
  { EXPECT_EQ(LineFile(path, LineFile::Begin::kAtEnd).add("more"), ""); }
  EXPECT_EQ(content(path), "first\nabc\nmore\n");
  std::filesystem::remove(path);
  EXPECT_EQ(file.add("gone"), "the file was removed");
  EXPECT_THROW(LineFile("/no/such/folder/x", LineFile::Begin::kEmpty), Error);
}

}  // namespace
}  // namespace ranklab
