// One rule for every option and argument that names an input: a file that is missing or cannot be accessed ends the
// command with exit code 1 and the system's reason, before anything is written. (8 is for files that were read and are
// broken, 2 for wrong words on the command line.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// IT is replaced by the input, RUN by the folder of a valid run with a checkpoint in ck.
constexpr const char* kCommands[] = {
    "config show -c IT",
    "config validate IT",
    "config diff IT IT",
    "config diff RUN/sound.toml IT",
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
    "trace diff RUN/trace.json.gz IT.json",
    "viz IT.json --format text",
    "viz RUN/trace.json.gz --compare IT.json",
    "viz --parity IT.json",
    "report IT.json -o made.html",
    "report IT -o made.html",
    "report RUN IT -o made.html",
    "parity --dumps IT --dumps IT",
    "parity --dumps RUN/dump --dumps IT",
    "plan validate IT.json",
    "schedule show IT.csv",
    "schedule check IT.csv",
    "schedule import IT.csv --out made.csv",
    "schedule show 1f1b --trace IT.json",
    "precision quantize IT.txt",
    "precision quantize IT.safetensors --tensor w",
    "model info ./IT",
    "lesson check 1 --file IT",
    "lesson watch 1 --file IT",
    "data prepare IT --out made",
    "data info IT",
    "data batch --data-path IT --step 0",
    "data export IT -o made",
    "data tokenizer train IT -o made",
    "data tokenizer encode --tokenizer IT --text a",
    "data tokenizer encode IT --tokenizer here.txt",
    "data tokenizer decode IT --tokenizer here.txt",
    "data tokenizer info --tokenizer IT",
    "ckpt inspect IT",
    "ckpt verify IT",
    "ckpt diff IT IT",
    "ckpt diff RUN/ck IT",
    "ckpt convert IT made",
    "ckpt reshard IT made",
    "ckpt export-hf IT made",
    "ckpt import-hf IT made",
    "generate --prompt-file IT",
};

std::string with(std::string command, const std::string& name, const std::string& value) {
  for (size_t at = 0; (at = command.find(name, at)) != std::string::npos; at += value.size())
    command.replace(at, name.size(), value);
  return command;
}

std::set<std::string> names_under(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) names.insert(entry.path().string());
  return names;
}

class MissingInputs : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // In a folder of its own, so that what it writes is its own.
  void check(const std::string& command, const std::string& input, size_t number) const {
    const fs::path here = folder_ / std::to_string(number);
    fs::create_directories(here);
    std::ofstream(here / "here.txt") << "a text that is long enough to be scored\n";
    // What root may not look at either.
    for (const char* end : {"", ".toml", ".csv", ".json", ".txt", ".safetensors"})
      fs::create_symlink(std::string("circle") + end, here / (std::string("circle") + end));
    const std::set<std::string> before = names_under(here);
    const std::string typed = with(with(command, "IT", input), "RUN", run_.string());
    const Outcome outcome = run_command("cd " + here.string() + " && RANKLAB_STATE_DIR=" + folder_.string() +
                                        "/state timeout 60 " RANKLAB_PROGRAM " " + typed + " 2>&1 </dev/null");
    EXPECT_EQ(outcome.exit_code, 1) << typed << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr(input), HasSubstr("; do: "))) << typed;
    // The system's reason; a missing file may be reported in other words.
    if (input == "circle")  // checkpoints' files may be no links at all
      EXPECT_THAT(outcome.output, ContainsRegex("Too many levels of symbolic links|got a symbolic link")) << typed;
    else
      EXPECT_THAT(outcome.output, ContainsRegex("[Nn]o such file|no folder of that name|no such run|no file "))
          << typed;
    EXPECT_EQ(names_under(here), before) << typed;
  }

  const fs::path folder_ = temporary_path("ranklab_missing");
  const fs::path run_ = folder_ / "run";
};

TEST_F(MissingInputs, EndEveryCommandWithTheSameExitCode) {
  const Outcome sound = run_command("cd " + folder_.string() +
                                    " && " RANKLAB_PROGRAM
                                    " train --mock-data --world-size 1 --train-iters 1 --eval-interval 0 --log-dir run "
                                    "--save run/ck --dump layers.0.attention_norm 2>&1");
  ASSERT_EQ(sound.exit_code, 0) << sound.output;
  std::ofstream(run_ / "sound.toml") << "[model]\nnum_layers = 2\n";
  constexpr const char* kInputs[] = {"absent", "circle"};
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < 2 * std::size(kCommands); i = next++) check(kCommands[i / 2], kInputs[i % 2], i);
  };
  std::thread second(work);
  work();
  second.join();
}

// Before anybody has looked inside, a folder is neither a checkpoint nor one of Hugging Face's.
TEST_F(MissingInputs, AFolderThatMayNotBeEnteredIsNotReportedAsOneOfHuggingFace) {
  fs::create_directories(folder_ / "closed");
  fs::permissions(folder_ / "closed", fs::perms::none);
  std::ofstream(folder_ / "here.txt") << "a text";
  for (const char* command :
       {"generate --load closed", "eval --text here.txt --load closed", "model info ./closed", "ckpt inspect closed",
        "ckpt verify closed", "ckpt diff closed closed", "ckpt export-hf closed made"}) {
    const Outcome run = run_command("cd " + folder_.string() +
                                    " && setpriv --bounding-set=-dac_override,-dac_read_search " RANKLAB_BINARY " " +
                                    command + " 2>&1");
    EXPECT_EQ(run.exit_code, 1) << command << "\n" << run.output;
    EXPECT_THAT(run.output, AllOf(HasSubstr("cannot access the folder"), HasSubstr("closed': Permission denied; want "),
                                  Not(HasSubstr("[Hugging Face]"))))
        << command;
  }
  fs::permissions(folder_ / "closed", fs::perms::owner_all);
}

}  // namespace
}  // namespace ranklab
