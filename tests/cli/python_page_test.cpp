// The pieces of Python in docs/python.md, run as they stand by the system's python3 on what the page's commands wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;

// The blocks of one language, in order.
std::vector<std::string> blocks_of(const std::string& page, const std::string& language) {
  std::vector<std::string> blocks;
  std::istringstream lines(page);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "```" + language) {
      blocks.emplace_back();
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

TEST(PythonPage, EveryPieceRunsAndSaysWhatIsThere) {
  const std::string page = text_of_file(RANKLAB_DOCS "/python.md");
  const fs::path folder = temporary_path("ranklab_python_page");
  fs::create_directories(folder);
  fs::create_symlink(RANKLAB_BINARY, folder / "ranklab");
  const std::string there = "cd '" + folder.string() + "' && env -u RANKLAB_DRIVER ";
  const std::vector<std::string> commands = blocks_of(page, "sh"), pieces = blocks_of(page, "python");
  ASSERT_EQ(commands.size(), 1u);
  ASSERT_EQ(pieces.size(), 5u);
  const Outcome run = run_command(there + "bash -ec '" + commands[0] + "' 2>&1");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  std::vector<std::string> printed;
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_LE(std::count(pieces[i].begin(), pieces[i].end(), '\n'), 15) << pieces[i];
    std::ofstream(folder / "piece.py") << pieces[i];
    const Outcome python = run_command(there + "python3 -I piece.py 2>&1");
    EXPECT_EQ(python.exit_code, 0) << pieces[i] << python.output;
    printed.push_back(python.output);
  }
  // Held to what the program says of the same files.
  EXPECT_THAT(printed[0], ContainsRegex("6 steps, loss 5\\.[0-9]+ -> [34]\\.[0-9]+, validated 2 times"));
  const nlohmann::json info =
      nlohmann::json::parse(run_command(there + "./ranklab trace info runs/last/trace.json.gz --json").output)["data"];
  int64_t tp_bytes = 0;
  for (const auto& rank : info["ranks"])
    for (const auto& row : rank["traffic"])
      if (row["axis"] == "tp") tp_bytes += row["wire_bytes"].get<int64_t>();
  EXPECT_THAT(printed[1], AllOf(ContainsRegex("rank 7: F [1-9][0-9]* us, BW [1-9][0-9]* us"),
                                testing::HasSubstr("'tp': " + std::to_string(tp_bytes))));
  EXPECT_THAT(printed[2], ContainsRegex("^45 tensors; embedding 256 x 128, norm [0-9]"));
  EXPECT_THAT(printed[3], AllOf(testing::HasSubstr("step 6, layout "), ContainsRegex("rank_0000[0-7].safetensors")));
  EXPECT_THAT(printed[4], AllOf(ContainsRegex("ZeRO 0: [0-9.]+ MiB"), ContainsRegex("ZeRO 3: [0-9.]+ MiB")));
}

}  // namespace
}  // namespace ranklab
