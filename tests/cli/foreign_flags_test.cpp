// Every line of foreign_lines.txt as its document has it: what it trains or means here, or what is to be used instead.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/settings/fields.h"
#include "tests/cli/ranklab_program.h"
#include "tests/cli/setting_lines.h"

namespace ranklab {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

void expect_settings(const std::string& words, const std::vector<std::string>& settings) {
  const nlohmann::json all = data_of("train --print-config " + words);
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const auto& value = all.at(setting.substr(0, equals));
    EXPECT_TRUE(is_value(value, setting.substr(equals + 1))) << setting << ", got " << value << " of " << words;
  }
}

TEST(ForeignFlags, EveryLineOfTheDocumentsRunsOrSaysWhatToUse) {
  const fs::path folder = temporary_path("foreign_flags");
  fs::create_directories(folder);
  const std::vector<SettingLine> lines = setting_lines(RANKLAB_TEST_DIR "/foreign_lines.txt");
  for (const auto& [how, words, parts] : lines) {
    SCOPED_TRACE(words);
    if (how != "refuse") expect_settings(words, parts);
    if (how == "show") continue;
    const Outcome run = run_command("cd " + folder.string() + " && " RANKLAB_PROGRAM " train " + words + " 2>&1");
    EXPECT_EQ(run.exit_code, how == "refuse" ? 2 : 0) << run.output;
    if (how != "refuse") continue;
    for (const std::string& part : parts) EXPECT_THAT(run.output, HasSubstr(part));
    EXPECT_THAT(run.output, HasSubstr("; do: "));
  }
  EXPECT_GE(lines.size(), 25U);
}

// Each rank of a launch gets the translated words.
TEST(ForeignFlags, ALaunchTakesThemToo) {
  const std::string folder = temporary_path("foreign_launch");
  const Outcome run = ranklab_and_errors(
      "launch --nproc_per_node=2 --use_mock_data --seq_len 32 --batch_size 2 --total_batch_size 128 --max_steps 1 "
      "--sample_tokens 0 --log_dir " +
      folder);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(text_of_file(folder + "/log.txt"), testing::StartsWith("0 train "));
}

TEST(ForeignFlags, EverySettingsFlagMayHaveUnderscores) {
  std::string dashes, underscores;
  const TrainConfig usual;
  int flags = 0;
  for (const ConfigField& field : config_fields()) {
    const std::string value = field.get(usual);
    if (field.kind == ConfigField::Kind::kFlag || value.empty() || value == "auto") continue;
    const std::string& flag = field.flags.back();
    std::string other = flag;
    std::replace(other.begin() + 2, other.end(), '-', '_');
    dashes += flag + "='" + value + "' ";
    underscores += other + "='" + value + "' ";
    ++flags;
  }
  EXPECT_GT(flags, 80);
  const Outcome want = ranklab_and_errors("train --print-config " + dashes);
  EXPECT_EQ(ranklab_and_errors("train --print-config " + underscores).output, want.output);
  EXPECT_EQ(want.exit_code, 0) << want.output;
  EXPECT_EQ(ranklab_and_errors("train --print_config --no_trace --mock_data").output,
            ranklab_and_errors("train --print-config --no-trace --mock-data").output);
  EXPECT_EQ(ranklab_and_errors("config show --max_steps 7 --seq_len=64").exit_code, 0);
}

TEST(ForeignFlags, HelpAndCompletionDoNotShowThem) {
  for (const char* command : {"train --help-all", "completion bash", "list commands --json"}) {
    const std::string text = ranklab_and_errors(command).output;
    for (const char* word :
         {"total-batch-size", "total_batch_size", "max-steps", "max_steps", "exp-name", "use-compile"})
      EXPECT_THAT(text, Not(HasSubstr(word))) << command;
  }
  // Commands without settings do not take them.
  EXPECT_THAT(ranklab_and_errors("schedule list --max_steps 2").output, HasSubstr("unknown option"));
}

}  // namespace
}  // namespace ranklab
