// What the README and the pages of docs/ show is what the program prints: tables verbatim, training figures, and every
// flag they name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

// The README, then every page of docs/.
const std::string& readme() {
  static const std::string kText = [] {
    std::string text = text_of_file(RANKLAB_README);
    std::set<std::string> pages;
    for (const auto& entry : std::filesystem::directory_iterator(RANKLAB_DOCS)) pages.insert(entry.path().string());
    for (const std::string& page : pages) text += "\n" + text_of_file(page);
    return text;
  }();
  return kText;
}

std::string printed_by(const std::string& arguments) {
  const Outcome outcome = run_command((std::string(RANKLAB_PROGRAM) + " " + arguments));
  EXPECT_EQ(outcome.exit_code, 0) << arguments;
  return outcome.output;
}

TEST(Readme, IsAPageAndLinksEveryOther) {
  const std::string text = text_of_file(RANKLAB_README);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 150);
  // Links lead to files that are there.
  const std::filesystem::path root = std::filesystem::path(RANKLAB_README).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(RANKLAB_DOCS)) {
    EXPECT_THAT(text, testing::HasSubstr("](docs/" + entry.path().filename().string() + ")"));
    const std::string page = text_of_file(entry.path().string());
    const std::regex link("\\]\\(([a-z_./A-Z]+)(#[a-z-]+)?\\)");
    for (auto it = std::sregex_iterator(page.begin(), page.end(), link); it != std::sregex_iterator(); ++it)
      EXPECT_TRUE(std::filesystem::exists(entry.path().parent_path() / (*it)[1].str())) << entry.path() << it->str();
  }
}

TEST(Readme, TablesAreTheProgramsOwn) {
  EXPECT_THAT(readme(), testing::HasSubstr(printed_by("list presets")));
  EXPECT_THAT(readme(), testing::HasSubstr(printed_by("list hardware")));
  EXPECT_THAT(readme(), testing::HasSubstr(printed_by("schedule list")));
  EXPECT_THAT(readme(), testing::HasSubstr(printed_by("list dispatchers")));
  EXPECT_THAT(readme(), testing::HasSubstr(printed_by("list recipes")));
  EXPECT_THAT(readme(), testing::HasSubstr(printed_by("list backends")));
  EXPECT_THAT(readme(), testing::HasSubstr(printed_by("list combinations")));
  EXPECT_NE(readme().find(printed_by("list commands")), std::string::npos)
      << "python3 tests/cli/write_commands_page.py " RANKLAB_BINARY " writes it anew";
  EXPECT_THAT(readme(), testing::HasSubstr(printed_by("list sentinels")));
  EXPECT_THAT(readme(), testing::HasSubstr(printed_by("list software")));
  EXPECT_THAT(readme(), testing::HasSubstr(printed_by("museum list")));
  std::string bench = printed_by("bench cp");
  while (bench.starts_with('#')) bench.erase(0, bench.find('\n') + 1);
  EXPECT_THAT(readme(), testing::HasSubstr(bench));
}

// "| 1 | optimizer states | 5.50 | 1.75 |"
TEST(Readme, BytesOfAZeroStageAreThoseOfItsMap) {
  for (int stage = 0; stage <= 3; ++stage) {
    const std::string printed = printed_by("zero map --bf16 --dp 8 --zero-stage " + std::to_string(stage));
    const std::string last = printed.substr(printed.rfind(' ') + 1);
    const std::regex row("\\| " + std::to_string(stage) + " \\| [^|]* \\| ([0-9.]+) \\|");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(readme(), found, row)) << stage;
    EXPECT_EQ(found[1].str() + "\n", last) << stage;
  }
}

// "| `p2p` | 173 | 95.1 | 47.8 | 24.1 |"
TEST(Readme, ActivationsOfALongSequenceAreThoseOfItsPlan) {
  const auto planned = [](const std::string& ranks, const std::string& flags) {
    return printed_by(
        "plan memory --num-layers 4 --hidden-size 64 --num-attention-heads 8 --seq-length 8192 --gbs 1 --world-size " +
        ranks + " --cp " + ranks + flags);
  };
  const std::string alone = planned("1", "");  // exchanges nothing
  for (const std::string exchange : {"p2p", "a2a", "all_gather"}) {
    const std::regex row("\\| `" + exchange + "` \\| ([0-9.]+) \\| ([0-9.]+) \\| ([0-9.]+) \\| ([0-9.]+) \\|");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(readme(), found, row)) << exchange;
    for (size_t i = 0; i < 4; ++i) {
      const std::string ranks = std::to_string(1 << i);
      EXPECT_THAT(i == 0 ? alone : planned(ranks, " --cp-comm-type " + exchange),
                  testing::ContainsRegex("every rank( +[0-9.]+ [KM]iB){3} +" + found[i + 1].str() + " MiB"))
          << exchange << ", cp " << ranks;
    }
  }
}

struct Row {
  double loss, grad_norm, virtual_ms, mfu_percent, exposed_percent, waiting_percent;
};

// The table of the first code block that has one: step, loss, grad norm, lr, tokens/s, virtual ms, MFU, exposed comm,
// waiting.
std::map<int, Row> training_rows() {
  std::map<int, Row> rows;
  std::istringstream lines(readme());
  for (std::string line; std::getline(lines, line);) {
    int step = 0;
    double lr = 0, speed = 0;
    Row row{};
    if (std::sscanf(line.c_str(), " %d %lf %lf %lf %lf %lf %lf%% %lf%% %lf%%", &step, &row.loss, &row.grad_norm, &lr,
                    &speed, &row.virtual_ms, &row.mfu_percent, &row.exposed_percent, &row.waiting_percent) == 9) {
      rows[step] = row;
    }
  }
  return rows;
}

// The newcomer's command: losses within what another CPU's rounding may do, virtual figures exactly as printed.
TEST(Readme, TheDefaultRunGivesTheFiguresShown) {
  const std::filesystem::path directory = temporary_path("ranklab_readme");
  const std::string output = printed_by("train --log-dir " + directory.string());
  EXPECT_THAT(output, testing::HasSubstr("sample:\nAnd the "));
  const std::map<int, Row> rows = training_rows();
  ASSERT_GE(rows.size(), 2u);
  std::map<int, nlohmann::json> metrics;
  std::istringstream lines(text_of_file((directory / "metrics.jsonl").string()));
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (object.contains("loss")) metrics[object.at("step")] = object;
  }
  for (const auto& [step, row] : rows) {
    ASSERT_TRUE(metrics.contains(step)) << "the README shows step " << step;
    const auto& got = metrics[step];
    EXPECT_NEAR(row.loss, got.at("loss").get<double>(), step == 0 ? 1e-3 : 0.05) << "step " << step;
    EXPECT_NEAR(row.virtual_ms, got.at("virtual_step_ms").get<double>(), 5.1e-4) << "step " << step;
    EXPECT_NEAR(row.mfu_percent, 100 * got.at("mfu").get<double>(), 0.051);
    EXPECT_NEAR(row.exposed_percent, 100 * got.at("exposed_comm_fraction").get<double>(), 0.051);
    EXPECT_NEAR(row.waiting_percent, 100 * got.at("peer_wait_fraction").get<double>(), 0.051);
  }
  EXPECT_LT(rows.rbegin()->second.loss, 0.5 * rows.begin()->second.loss) << "the loss clearly falls";
}

// Metrics of the last of three steps.
nlohmann::json last_step(const std::string& flags) {
  const std::filesystem::path directory = temporary_path("ranklab_readme_experts");
  printed_by("train --preset deepseek_v3_tiny --ep 8 --num-microbatches 4 --steps 3 --sample-tokens 0 --no-trace " +
             flags + " --gemm mkl --log-dir " + directory.string());  // auto may choose anew, and another last digit
  std::istringstream lines(text_of_file((directory / "metrics.jsonl").string()));
  nlohmann::json last;
  for (std::string line; std::getline(lines, line);)
    if (auto object = nlohmann::json::parse(line); object.contains("loss")) last = std::move(object);
  return last;
}

// How far communication hides depends on where tokens go, and that, in the last digit, on the CPU's rounding.
TEST(Readme, TheOverlapFiguresAreThoseOfTheRuns) {
  std::smatch found;
  const std::regex text(
      "exposed communication is ([0-9.]+) % of a step[^.]*, where\\n?[^.]*travel, it is ([0-9.]+) %, and the step "
      "takes "
      "([0-9.]+) ms instead of ([0-9.]+),");
  ASSERT_TRUE(std::regex_search(readme(), found, text));
  const nlohmann::json plain = last_step(""), hidden = last_step("--overlap-moe-expert-parallel-comm");
  EXPECT_NEAR(std::stod(found[1]), 100 * plain.at("exposed_comm_fraction").get<double>(), 0.5);
  EXPECT_NEAR(std::stod(found[2]), 100 * hidden.at("exposed_comm_fraction").get<double>(), 0.5);
  EXPECT_NEAR(std::stod(found[3]), hidden.at("virtual_step_ms").get<double>(), 0.1);
  EXPECT_NEAR(std::stod(found[4]), plain.at("virtual_step_ms").get<double>(), 0.1);
  EXPECT_EQ(plain.at("loss"), hidden.at("loss"));
}

TEST(Readme, EveryFlagItNamesExists) {
  // Completion knows the flags of every command.
  std::string help = printed_by("completion bash");
  // `./ranklab setup` is the script's own.
  std::ifstream driver(std::filesystem::path(RANKLAB_README).parent_path() / "ranklab");
  for (std::string line; std::getline(driver, line);)
    if (line.starts_with("#")) help += line + "\n";
  const std::regex flag("--[a-z][a-z0-9-]+");
  for (auto it = std::sregex_iterator(readme().begin(), readme().end(), flag); it != std::sregex_iterator(); ++it) {
    const std::string name = it->str();
    if (name == "--help" || name == "--help-all") continue;  // every command's
    // torchrun's, nvidia-smi's, Megatron-LM's
    if (name == "--no-python" || name == "--query-gpu" || name == "--no-use-layer-wise-param-layout") continue;
    if (name == "--train-data-path" || name == "--split") continue;
    const std::string positive = name.starts_with("--no-") ? "--" + name.substr(5) : name;
    EXPECT_TRUE(help.find(name) != std::string::npos || help.find(positive) != std::string::npos) << name;
  }
}

// The window's panels, by the names that --panel takes.
TEST(Readme, NamesEveryPanel) {
  const std::string refusal =
      run_command(RANKLAB_PROGRAM " viz --headless --panel none-of-that-name -o x.png 2>&1").output;
  const size_t begin = refusal.find("want ") + 5, end = refusal.find(';', begin);
  ASSERT_LT(begin, end) << refusal;
  std::istringstream names(refusal.substr(begin, end - begin));
  int count = 0;
  for (std::string name; std::getline(names, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    EXPECT_THAT(readme(), testing::HasSubstr("| `" + name + "` |"));
    ++count;
  }
  EXPECT_GE(count, 12) << refusal;
}

std::pair<uint32_t, uint32_t> size_of_png(const std::string& png) {
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(png.at(at + i));
    return value;
  };
  return {number(16), number(20)};
}

// The texts of a drawing without what differs between machines: its numbers, and which of several tensors is farthest
// off.
std::string words_of_svg(const std::string& svg) {
  std::string text = svg;
  for (const char* left_out : {"<[^>]*>", "[^\n]* on rank [^\n]*", "[-+0-9.e]"})
    text = std::regex_replace(text, std::regex(left_out), "");
  return text;
}

// Both pictures are made by the script beside them.
TEST(Readme, ThePicturesAreTheScripts) {
  EXPECT_THAT(readme(), testing::HasSubstr("](viz/screenshot.png)"));
  EXPECT_THAT(readme(), testing::HasSubstr("](../viz/parity.svg)"));
  const std::string folder = std::filesystem::path(RANKLAB_README).parent_path().string() + "/viz/";
  const std::string drawn = temporary_path("ranklab_readme_picture") + ".png", parity = drawn + ".svg";
  const Outcome run = run_command(folder + "screenshot.sh " RANKLAB_PROGRAM " " + drawn + " " + parity + " 2>&1");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::string now = text_of_file(drawn), shown = text_of_file(folder + "screenshot.png");
  EXPECT_EQ(size_of_png(now), size_of_png(shown));
  EXPECT_NEAR(static_cast<double>(now.size()) / static_cast<double>(shown.size()), 1, 0.25) << "draw it again";
  EXPECT_EQ(words_of_svg(text_of_file(parity)), words_of_svg(text_of_file(folder + "parity.svg"))) << "draw it again";
  std::filesystem::remove(drawn);
  std::filesystem::remove(parity);
}

}  // namespace
}  // namespace ranklab
