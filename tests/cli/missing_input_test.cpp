// One rule for every option and argument that names an input: what is not there, and what may not be looked at, ends
// the command with exit code 1 and the system's reason, before anything is written. (8 is for what was read and is
// broken, 2 for what is wrong with the words themselves.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

// IT stands for the input.
constexpr const char* kCommands[] = {
    "config show -c IT",
    "config validate IT",
    "config diff IT IT",
    "train --data-path IT",
    "train --mock-data --load IT",
    "train --hardware IT.toml",
    "train --precision-recipe ./IT.toml",
    "train --pp 2 --pipeline-schedule IT.csv",
    "generate --load IT",
    "generate --tokenizer IT",
    "eval --text IT",
    "eval --tasks IT",
    "eval --text here.txt --load IT",
    "eval --text here.txt --vocab-size 300 --tokenizer IT",
    "launch --rdzv-token-file IT train",
    "trace info IT.json",
    "trace stats IT.json",
    "trace validate IT.json",
    "trace diff IT.json IT.json",
    "viz IT.json --format text",
    "viz --parity IT.json",
    "report IT.json -o made.html",
    "report IT -o made.html",
    "parity --dumps IT --dumps IT",
    "plan validate IT.json",
    "schedule show IT.csv",
    "schedule check IT.csv",
    "schedule import IT.csv --out made.csv",
    "schedule show 1f1b --trace IT.json",
    "precision quantize IT.txt",
    "precision quantize IT.safetensors --tensor w",
    "model info ./IT",
    "lesson check 1 --file IT",
    "data prepare IT --out made",
    "data info IT",
    "data batch --data-path IT --step 0",
    "data export IT -o made",
    "data tokenizer train IT -o made",
    "data tokenizer encode --tokenizer IT --text a",
    "data tokenizer info --tokenizer IT",
    "ckpt inspect IT",
    "ckpt verify IT",
    "ckpt diff IT IT",
    "ckpt convert IT made",
    "ckpt reshard IT made",
    "ckpt export-hf IT made",
    "ckpt import-hf IT made",
};

std::string with(const std::string& command, const std::string& input) {
  std::string out = command;
  for (size_t at = 0; (at = out.find("IT", at)) != std::string::npos; at += input.size()) out.replace(at, 2, input);
  return out;
}

class MissingInputs : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "here.txt") << "a text that is long enough to be scored\n";
    // What root may not look at either.
    for (const char* end : {"", ".toml", ".csv", ".json", ".txt", ".safetensors"})
      fs::create_symlink(std::string("circle") + end, folder_ / (std::string("circle") + end));
  }
  void TearDown() override { fs::remove_all(folder_); }

  void check(const std::string& command) const {
    const Outcome outcome = run_command("cd " + folder_.string() + " && RANKLAB_STATE_DIR=" + folder_.string() +
                                        "/state timeout 60 " RANKLAB_PROGRAM " " + command + " 2>&1 </dev/null");
    EXPECT_EQ(outcome.exit_code, 1) << command << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, testing::HasSubstr("; do: ")) << command;
    EXPECT_FALSE(fs::exists(folder_ / "made")) << command;
  }

  const fs::path folder_ = temporary_path("ranklab_missing");
};

TEST_F(MissingInputs, EndEveryCommandWithTheSameExitCode) {
  std::vector<std::string> commands;
  for (const char* command : kCommands)
    for (const char* input : {"absent", "circle"}) commands.push_back(with(command, input));
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < commands.size(); i = next++) check(commands[i]);
  };
  std::thread second(work);
  work();
  second.join();
}

}  // namespace
}  // namespace ranklab
