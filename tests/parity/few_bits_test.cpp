// A bug of a layout that the rounding of low precision hides shows in fp32, which parity also compares: docs/parity.md
// has the table.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/config/exhibit_config.h"
#include "core/config/precision_choice.h"
#include "core/museum/exhibit.h"
#include "core/parity/microscope.h"
#include "core/parity/rounding/in_fp32.h"
#include "tests/all_cases.h"
#include "tests/parity/world_of.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

const std::string kSeen = "seen", kInFp32 = "in fp32";

TrainConfig in_recipe(TrainConfig config, const std::string& recipe) {
  config.precision.recipe = recipe;
  config.precision.initial_loss_scale = 1024;  // of fp16: no step is skipped
  config.model.hidden_size = config.model.ffn_hidden_size = 64;
  if (recipe == "deepseek_v3" || recipe.starts_with("mx")) config.precision.block_size = 16;
  return config;
}

// "seen" in the recipe's precision, or "in fp32" only; "" if the layout cannot be combined with the recipe.
std::string how_seen(const std::string& bug, const std::string& recipe) {
  const TrainConfig right = in_recipe(config_of_flags(exhibit_flags(exhibit_named(bug))), recipe);
  try {
    resolve(right);
  } catch (const Error&) {
    return "";
  }
  TrainConfig wrong = right;
  wrong.inject = bug;
  const ParityOptions how{.steps = bug == "stale-gather" ? 3 : 2, .narrow = false};
  const ParityResult result = Microscope(reference_layout(right), world_of, how).examine(wrong);
  if (!result.differs()) return "not seen";
  EXPECT_EQ(result.type == at::kFloat, !result.low_precision.empty()) << bug << " " << recipe;
  EXPECT_TRUE(result.low_precision.empty() || result.low_precision == recipe) << result.low_precision;
  return result.low_precision.empty() ? kSeen : kInFp32;
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> found;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    std::erase(cell, '`');
    const size_t begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
    found.push_back(begin == std::string::npos ? "" : cell.substr(begin, end + 1 - begin));
  }
  return found;
}

// Of each bug in the page's table, how each recipe shows it.
std::map<std::string, std::map<std::string, std::string>> table_of_page() {
  std::ifstream page(RANKLAB_SOURCE_DIR "/docs/parity.md");
  std::map<std::string, std::map<std::string, std::string>> table;
  std::vector<std::string> recipes;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `--inject` | `bf16` |")) {
      recipes = cells(line);
    } else if (!recipes.empty() && !line.starts_with("|")) {
      break;
    } else if (!recipes.empty() && line.starts_with("| `")) {
      const std::vector<std::string> row = cells(line);
      for (size_t i = 1; i < recipes.size(); ++i) table[row.at(0)][recipes[i]] = row.at(i);
    }
  }
  return table;
}

// Usually each bug in one recipe that hides it, another one for each, and in one that does not.
TEST(FewBits, HideWhatThePageSays) {
  const auto table = table_of_page();
  ASSERT_GE(table.size(), 4U);
  size_t turn = 0;
  for (const auto& [bug, row] : table) {
    std::map<std::string, std::vector<std::string>> recipes;
    for (const auto& [recipe, how] : row) recipes[how].push_back(recipe);
    EXPECT_TRUE(recipes.contains(kInFp32)) << bug << " belongs to no table of what is hidden";
    for (const auto& [how, some] : recipes) {
      for (size_t i = 0; i < some.size(); ++i) {
        if (!all_cases() && i != turn % some.size()) continue;
        EXPECT_EQ(how_seen(bug, some[i]), how) << bug << " " << some[i];
      }
    }
    ++turn;
  }
}

TEST(FewBits, HideNoOtherBugOfTheMuseum) {
  if (!all_cases()) GTEST_SKIP() << "RANKLAB_ALL_CASES=1";
  // Bugs of low precision itself, one whose training needs another run before it, and one whose run ends with an error.
  const std::set<std::string> others = {"bf16-accumulation", "bf16-no-master", "loss-scale-unsynced",
                                        "resume-without-sampler", "empty-expert-skips"};
  const auto table = table_of_page();
  for (const Exhibit* exhibit : exhibits()) {
    if (others.contains(exhibit->name) || table.contains(exhibit->name)) continue;
    for (const auto& [recipe, how] : table.begin()->second) {
      const std::string seen = how_seen(exhibit->name, recipe);
      EXPECT_TRUE(seen == kSeen || seen.empty()) << exhibit->name << " " << recipe << ": " << seen;
    }
  }
}

TEST(FewBits, OfARightLayoutNothingDiffersInFp32Either) {
  TrainConfig small = small_config();
  small.params_dtype = "fp32";
  TrainConfig config = in_recipe(small, "mxfp8");
  config.parallel = {.world = 4, .tp = 2, .dp = 2};
  const ParityResult result = Microscope(reference_layout(config), world_of, {}).examine(config);
  EXPECT_FALSE(result.differs());
  EXPECT_EQ(result.low_precision, "mxfp8");
  EXPECT_EQ(result.type, at::kBFloat16) << "what is told of a right run is of its own bits";
}

TEST(FewBits, HaveAName) {
  const auto name_of = [](auto change) {
    TrainConfig config = small_config();
    config.params_dtype = "fp32";
    change(config);
    EXPECT_EQ(low_precision_cause(resolve(in_fp32(config))), "");
    return low_precision_cause(resolve(config));
  };
  EXPECT_EQ(name_of([](TrainConfig&) {}), "");
  EXPECT_EQ(name_of([](TrainConfig& c) { c.params_dtype = "fp64"; }), "");
  EXPECT_EQ(name_of([](TrainConfig& c) { c.precision.recipe = "fp32"; }), "");
  EXPECT_EQ(name_of([](TrainConfig& c) { c.bf16 = true; }), "bf16");
  EXPECT_EQ(name_of([](TrainConfig& c) { c.precision.fp16 = true; }), "fp16");
  EXPECT_EQ(name_of([](TrainConfig& c) { c.precision.fp8 = true; }), "fp8_delayed");
  EXPECT_EQ(name_of([](TrainConfig& c) { c.precision.compute_rules = "*mlp*=bf16"; }), "bf16");
}

}  // namespace
}  // namespace ranklab
