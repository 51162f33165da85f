// ranklab train --layout auto: what it chooses, where it writes it, and what it leaves as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

// A setting's value and origin in run.json.
std::pair<std::string, std::string> recorded(const std::string& folder, const std::string& key) {
  const auto record = nlohmann::json::parse(text_of_file(folder + "/run.json"));
  for (const auto& row : record.at("settings"))
    if (row.at(0) == key) return {row.at(1), row.at(2)};
  return {};
}

TEST(AutoLayout, IsRecordedAndKeptByAResume) {
  const std::string folder = testing::TempDir() + "/auto_layout";
  std::filesystem::remove_all(folder);
  const std::string run =
      "train --layout auto --world-size 4 --gbs 8 --num-layers 2 --hidden-size 32 --ffn-hidden-size 64 "
      "--num-attention-heads 4 --seq-length 32 --mock-data --sample-tokens 0 --eval-interval 0 "
      "--save " +
      folder + "/saved --load auto ";
  const Outcome first = ranklab(run + "--train-iters 1 --log-dir " + folder + "/first");
  ASSERT_EQ(first.exit_code, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("a rank with a GPU's workspace, reserve and context; the fastest that fits"));
  EXPECT_EQ(recorded(folder + "/first", "parallel.tp"), (std::pair<std::string, std::string>{"1", "--layout auto"}))
      << "communication of so small a model costs more than it saves";
  // The search could choose differently on another machine, so it is not run.
  const Outcome second = ranklab(run + "--train-iters 2 --hardware a100-80 --log-dir " + folder + "/second");
  ASSERT_EQ(second.exit_code, 0) << second.output;
  EXPECT_THAT(second.output, HasSubstr("kept from " + folder + "/saved/step_00000001"));
  for (const char* key : {"parallel.tp", "parallel.pp", "parallel.zero_stage", "train.micro_batch_size"}) {
    EXPECT_EQ(recorded(folder + "/second", key).first, recorded(folder + "/first", key).first) << key;
    EXPECT_THAT(recorded(folder + "/second", key).second, HasSubstr("checkpoint ")) << key;
  }
  const Outcome other = ranklab(run + "--train-iters 3 --tp 2 --log-dir " + folder + "/third");
  ASSERT_EQ(other.exit_code, 0) << other.output;
  EXPECT_THAT(other.output, HasSubstr("fastest that fits")) << "what is given is another layout";
}

TEST(AutoLayout, LeavesWhatIsGiven) {
  const auto plan =
      data_of("train --dry-run --layout auto --preset llama_1b --bf16 --world-size 16 --pp 4 --gbs 64 --json");
  EXPECT_EQ(plan.at("pp"), 4);
  const auto best = data_of("train --dry-run --layout auto --preset llama_1b --bf16 --world-size 16 --gbs 64 --json");
  const auto step = [](const auto& of) { return of.at("estimate").at("virtual_step_ms").template get<double>(); };
  EXPECT_LE(step(best), step(plan));
  EXPECT_LE(step(best),
            1.02 * step(data_of("train --dry-run --preset llama_1b --bf16 --world-size 16 --gbs 64 --json")));
}

}  // namespace
}  // namespace ranklab
