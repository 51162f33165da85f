// --json: stdout is for programs, one object a line; people read stderr; errors are objects, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

const std::filesystem::path kDirectory = temporary_path("ranklab_json");

Outcome train_two_ranks(const std::string& arguments) {
  return run_command(std::string(RANKLAB_PROGRAM " train --world-size 2 --tp 1 --mock-data --gbs 4 --num-layers 1 ") +
                     "--log-dir " + kDirectory.string() + " " + arguments);
}

std::vector<nlohmann::json> lines_of(std::istream&& in) {
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(in, line);) objects.push_back(nlohmann::json::parse(line));
  return objects;
}
std::vector<nlohmann::json> lines_of(const std::string& text) { return lines_of(std::istringstream(text)); }

TEST(TrainJson, IsTheRunLogAndThenTheResult) {
  const Outcome run =
      train_two_ranks("--json --train-iters 5 --eval-interval 5 --log-interval 2 --sample-tokens 4 2>/dev/null");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto objects = lines_of(run.output);
  const auto log = lines_of(std::ifstream(kDirectory / "metrics.jsonl"));
  ASSERT_EQ(objects.size(), 5u) << "steps 0, 2, 4, a validation, the result";
  ASSERT_EQ(log.size(), 6u) << "every step, the validation";
  EXPECT_EQ(objects[0], log[0]);
  EXPECT_EQ(objects[1], log[2]);
  EXPECT_EQ(objects[2], log[4]);
  EXPECT_EQ(objects[3], log[5]);
  EXPECT_GT(objects[3]["validation_loss"], 0);
  const auto& result = objects[4];
  EXPECT_EQ(result["schema"], 1);
  EXPECT_EQ(result["ok"], true);
  EXPECT_EQ(result["data"]["steps_done"], 5);
  EXPECT_EQ(result["data"]["last_loss"], log[4]["loss"]);
  EXPECT_TRUE(result["warnings"].empty());
  EXPECT_TRUE(std::filesystem::exists(result["data"]["trace"].get<std::string>()));
}

TEST(TrainJson, ATraceWithoutAStepIsNamedNowhere) {
  const Outcome run =
      train_two_ranks("--json --train-iters 1 --eval-interval 0 --sample-tokens 0 --trace-step-start 5 2>/dev/null");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto result = lines_of(run.output).back();
  EXPECT_EQ(result["data"]["trace"], "");
  ASSERT_EQ(result["warnings"].size(), 1u);
  EXPECT_THAT(result["warnings"][0].get<std::string>(),
              HasSubstr("trace: no step: this run's are 0 to 0, and 5 to 24 are traced"));
}

TEST(TrainJson, PeopleReadStderr) {
  const Outcome run = train_two_ranks("--json --train-iters 1 --eval-interval 0 --sample-tokens 0 2>&1 >/dev/null");
  EXPECT_THAT(run.output, HasSubstr("parameters, 1 layer,"));
  EXPECT_THAT(run.output, HasSubstr("done after 1 step "));
}

TEST(TrainJson, InterruptedIsAnErrorWithWhatWasDone) {
  for (const auto& [signal, code] : {std::pair{"INT", 130}, {"TERM", 143}}) {
    const std::string folder = temporary_path("ranklab_json_interrupted"), log = folder + "/metrics.jsonl";
    // Milliseconds a step: after the signal it may take 1.2 seconds, on a busy machine, too.
    const Outcome run = run_command(
        "env --default-signal=INT " RANKLAB_BINARY
        " train --world-size 2 --tp 1 --mock-data --json --num-layers 1 --hidden-size 32 "
        "--num-attention-heads 4 --seq-length 32 --gbs 4 --train-iters 1000000 --eval-interval 0 --log-dir " +
        folder + " 2>/dev/null & until [ -s " + log + " ]; do sleep 0.05; done; kill -" + signal + " $!; wait $!");
    EXPECT_EQ(run.exit_code, code);
    std::filesystem::remove_all(folder);
    const auto last = lines_of(run.output).back();
    EXPECT_EQ(last["ok"], false);
    EXPECT_EQ(last["error"]["code"], code);
    EXPECT_GT(last["data"]["steps_done"], 0);
  }
}

struct BadCommand {
  const char* arguments;
  int code;
};

TEST(ErrorJson, EveryCommandWithJsonAnswersWithAnObject) {
  const BadCommand bad[] = {
      {"train --json --tp 3", 2},
      {"train --json --no-such-flag", 2},
      {"train --json --lr x", 2},
      {"train --json --dry-run --preset nothing", 2},
      {"train --json --mock-data --world-size 2 --tp 1 --lr 1e30 --train-iters 9 --lr-warmup-iters 0 --log-dir LOG", 7},
      {"trace info --json /no/such/file", 1},
      {"config show --json --tp x", 2},
      {"topo --json --tp 0", 2},
      {"doctor --json --extra", 2},
  };
  for (auto [arguments, code] : bad) {
    std::string line = std::string(RANKLAB_PROGRAM " ") + arguments + " 2>/dev/null";
    if (const size_t at = line.find("LOG"); at != std::string::npos) line.replace(at, 3, kDirectory.string());
    const Outcome run = run_command(line);
    EXPECT_EQ(run.exit_code, code) << arguments << run.output;
    ASSERT_FALSE(run.output.empty()) << arguments;
    const auto last = lines_of(run.output).back();
    EXPECT_EQ(last["schema"], 1) << arguments;
    EXPECT_EQ(last["ok"], false);
    EXPECT_EQ(last["error"]["code"], code);
    EXPECT_FALSE(last["error"]["message"].get<std::string>().empty());
    EXPECT_TRUE(last["error"].contains("hint"));
  }
}

TEST(Colour, ErrorsAndTablesAreColouredOnlyWhenAskedFor) {
  const auto colored = [](const std::string& line) {
    return run_command(line).output.find('\033') != std::string::npos;
  };
  EXPECT_FALSE(colored(RANKLAB_PROGRAM " train --tp 3 2>&1"));
  EXPECT_TRUE(colored("CLICOLOR_FORCE=1 " RANKLAB_PROGRAM " train --tp 3 2>&1"));
  EXPECT_TRUE(colored(RANKLAB_PROGRAM " train --dry-run --color=always"));
  EXPECT_FALSE(colored("NO_COLOR=1 CLICOLOR_FORCE=1 " RANKLAB_PROGRAM " train --dry-run"));
  const bool has_script = run_command("command -v script").exit_code == 0;  // a terminal for its command
  if (!has_script) GTEST_SKIP() << "no script(1)";
  const auto on_terminal = [&](const std::string& environment) {
    return colored("script -qec '" + environment + " " RANKLAB_PROGRAM " train --dry-run' /dev/null");
  };
  EXPECT_TRUE(on_terminal("env -u NO_COLOR TERM=xterm"));
  EXPECT_FALSE(on_terminal("env -u NO_COLOR TERM=dumb"));
  EXPECT_FALSE(on_terminal("env NO_COLOR=1 TERM=xterm"));
}

TEST(ExitCodes, AreInTheHelp) {
  const std::string help = run_command(RANKLAB_PROGRAM " --help").output;
  for (const char* word : {"Exit codes", "2 usage", "6 hang", "8 broken file", "130 Ctrl-C"}) {
    EXPECT_THAT(help, HasSubstr(word));
  }
}

}  // namespace
}  // namespace ranklab
