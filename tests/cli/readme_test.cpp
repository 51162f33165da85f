// What the README shows is what the program prints: its tables verbatim, its training figures, and every flag it names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

const std::string& readme() {
  static const std::string kText = read(RANKLAB_README);
  return kText;
}

std::string output_of(const std::string& arguments) {
  const Outcome outcome = run_command((std::string(RANKLAB_PROGRAM) + " " + arguments));
  EXPECT_EQ(outcome.exit_code, 0) << arguments;
  return outcome.output;
}

TEST(Readme, TablesAreTheProgramsOwn) {
  EXPECT_THAT(readme(), testing::HasSubstr(output_of("list presets")));
  EXPECT_THAT(readme(), testing::HasSubstr(output_of("list hardware")));
  EXPECT_THAT(readme(), testing::HasSubstr(output_of("schedule list")));
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
  const std::string output = output_of("train --log-dir " + directory.string());
  EXPECT_THAT(output, testing::HasSubstr("sample:\nAnd the "));
  const std::map<int, Row> rows = training_rows();
  ASSERT_GE(rows.size(), 2u);
  std::map<int, nlohmann::json> metrics;
  std::istringstream lines(read((directory / "metrics.jsonl").string()));
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    metrics[object.at("step")] = object;
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

TEST(Readme, EveryFlagItNamesExists) {
  std::string help = output_of("train --help") + output_of("--help");
  for (const char* sub :
       {"bench collectives", "bench train", "bench step", "bench overhead", "trace info", "trace validate",
        "model info", "topo", "doctor", "launch", "schedule show", "schedule simulate", "schedule export",
        "config show", "data prepare", "lesson run", "lesson check"}) {
    help += output_of(std::string(sub) + " --help");
  }
  const std::regex flag("--[a-z][a-z0-9-]+");
  for (auto it = std::sregex_iterator(readme().begin(), readme().end(), flag); it != std::sregex_iterator(); ++it) {
    const std::string name = it->str();
    if (name == "--no-python" || name == "--help") continue;  // torchrun's; every command's
    const std::string positive = name.starts_with("--no-") ? "--" + name.substr(5) : name;
    EXPECT_TRUE(help.find(name) != std::string::npos || help.find(positive) != std::string::npos) << name;
  }
}

}  // namespace
}  // namespace ranklab
