#include "core/trace/find_trace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace ranklab {
namespace {

namespace fs = std::filesystem;

TEST(FindTrace, AFolderStandsForItsTraceAndAKilledRunForWhatItWrote) {
  const fs::path folder = fs::path(testing::TempDir()) / "find trace";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const auto write = [&](const char* name, int seconds_ago) {
    std::ofstream(folder / name) << "x";
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::seconds(seconds_ago));
  };
  const auto found = [&] { return fs::path(find_trace(folder)).filename(); };
  EXPECT_EQ(found(), "trace.json.gz") << "what an error then says is missing";
  write("trace.json.gz.part12.1", 5);
  write("trace.json.gz.part9.1", 60);
  write("trace.json.part8", 0);
  fs::create_directory(folder / "trace.json.gz.part7.1");
  EXPECT_EQ(found(), "trace.json.gz.part12.1") << "the newest, not the first by name";
  write("trace.json.gz", 90);
  EXPECT_EQ(found(), "trace.json.gz") << "a whole one before any part";
  EXPECT_EQ(find_trace(folder), trace_path(folder)) << "where a run writes it";
  EXPECT_EQ(find_trace("some/trace.csv"), "some/trace.csv");
  EXPECT_EQ(find_trace("last"), "runs/last/trace.json.gz");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace ranklab
