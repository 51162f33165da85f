// Against PyTorch itself, where $RANKLAB_PYTHON has one: what torch writes is read here and sound, and what is written
// here loads into torch's runtime, which validates it and adds its messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/pipeline/csv.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/verify.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int status = -1;
  std::string output;
};

Outcome run_script(const std::string& arguments) {
  const std::string command =
      std::string(std::getenv("RANKLAB_PYTHON")) + " " RANKLAB_TEST_DIR "/torch_schedules.py " + arguments + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer;
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    outcome.output.append(buffer.data(), n);
  outcome.status = ::pclose(pipe);
  return outcome;
}

class ScheduleCsvTorch : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("RANKLAB_PYTHON") == nullptr)
      GTEST_SKIP() << "RANKLAB_PYTHON names no Python with torch: nothing to compare with";
    folder_ = fs::path(testing::TempDir()) / "ranklab_torch_schedules";
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = "ranklab_torch_schedules_unused";
};

TEST_F(ScheduleCsvTorch, TorchsFilesAreReadAndSound) {
  const Outcome made = run_script("dump " + folder_.string());
  ASSERT_EQ(made.status, 0) << made.output;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const ScheduleFile file = read_schedule(entry.path().string(), ScheduleDialect::kAuto);
    EXPECT_EQ(file.dialect, ScheduleDialect::kTorch);
    EXPECT_THAT(file.message_problems, testing::IsEmpty()) << entry.path();
    const ScheduleProof proof = verify_schedule(file.schedule);
    EXPECT_THAT(proof.problems, testing::IsEmpty()) << entry.path();
    const bool has_messages = entry.path().string().find("compute_comms") != std::string::npos;
    EXPECT_EQ(file.messages, has_messages ? 2 * proof.messages : 0) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 10);
}

TEST_F(ScheduleCsvTorch, OurFilesLoadIntoTorchsRuntime) {
  for (const bool vee : {false, true}) {
    std::string files;
    std::vector<std::string> wanted;
    for (const ScheduleKind& kind : schedule_kinds()) {
      if (std::string(kind.name) == "dualpipe" || (kind.chunks == 2) != vee) continue;
      const std::string path = (folder_ / (std::string(kind.name) + ".csv")).string();
      const Schedule schedule = make_schedule(kind.name, {4, 8, kind.chunks == 0 ? 2 : 1});
      write_schedule(schedule, path, ScheduleDialect::kTorch);
      wanted.push_back(std::string(kind.name) + ".csv: 4 rows, " + std::to_string(verify_schedule(schedule).messages) +
                       " sends");
      files += " " + path;
    }
    const Outcome loaded = run_script(std::string("load 4 8 ") + (vee ? "v" : "loop") + files);
    EXPECT_EQ(loaded.status, 0) << loaded.output;
    for (const std::string& line : wanted) EXPECT_THAT(loaded.output, testing::HasSubstr(line));
  }
}

}  // namespace
}  // namespace ranklab
