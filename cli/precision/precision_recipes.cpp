// `ranklab precision recipes`: the type of each tensor in the built-in recipes (or in a file's).
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/style.h"
#include "cli/precision/precision_subcommands.h"
#include "cli/precision/precision_text.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/precision/recipe_toml.h"

namespace ranklab {
namespace {

struct RecipesRequest {
  std::string name;
  bool toml = false, json = false;
};

std::string table_text(const Style& style) {
  std::string text = style.bold(strprintf("%-12s %-10s %-10s %-28s %-28s %s", "recipe", "parameters", "moments",
                                          "activation", "weight", "gradient")) +
                     "\n";
  for (const PrecisionRecipe& r : precision_recipes()) {
    const std::string compute(name(r.compute));
    const std::string moments = std::string(name(r.exp_avg)) + " " + std::string(name(r.exp_avg_sq));
    text += strprintf("%-12s %-10s %-10s %-28s %-28s %s\n", r.name.c_str(), compute.c_str(), moments.c_str(),
                      tensor_text(r.linear.activation, "-").c_str(), tensor_text(r.linear.weight, "-").c_str(),
                      tensor_text(r.linear.gradient, "-").c_str());
  }
  return text + "ranklab precision recipes NAME: one in full; --toml: as a file to change\n";
}

std::string recipe_text(const PrecisionRecipe& r, const Style& style) {
  const std::string compute(name(r.compute));
  const auto row = [](const char* what, const std::string& value) {
    return value.empty() ? std::string() : strprintf("  %-15s %s\n", what, value.c_str());
  };
  const bool quantized = r.linear.quantized();
  return style.bold(r.name) + ": " + r.summary + "\n" + row("source", r.source) + row("parameters", compute) +
         row("activation", tensor_text(r.linear.activation, compute)) +
         row("weight", tensor_text(r.linear.weight, compute)) +
         row("gradient", tensor_text(r.linear.gradient, compute)) + row("products", products_text(r.linear)) +
         row("high precision", quantized ? join(r.high_precision, ", ") : "") + row("kept", states_text(r)) +
         row("sent", sent_text(r, true));
}

int run(const RecipesRequest& request) {
  RANKLAB_CHECK(!request.toml || !request.json, ErrorKind::kInvalidArgument, .where = "precision recipes",
                .what = "--toml and --json exclude each other", .got = "both", .want = "one of them",
                .fix = "leave one of them out");
  RANKLAB_CHECK(!request.toml || !request.name.empty(), ErrorKind::kInvalidArgument, .where = "precision recipes",
                .what = "--toml writes one recipe", .got = "no name", .want = "ranklab precision recipes NAME --toml",
                .fix = "name one of ranklab precision recipes");
  std::string text;
  if (request.name.empty()) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const PrecisionRecipe& recipe : precision_recipes()) rows.push_back(recipe_json(recipe));
    text = request.json ? json_result({{"recipes", rows}}) : table_text(style_for(stdout));
  } else {
    const PrecisionRecipe recipe = load_precision_recipe(request.name);
    text = request.json   ? json_result(recipe_json(recipe))
           : request.toml ? recipe_toml(recipe)
                          : recipe_text(recipe, style_for(stdout));
  }
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

PrecisionSubcommand add_precision_recipes(CommandLine& app) {
  CommandLine* command = app.add_subcommand("recipes", "formats of the tensors of training in each recipe");
  auto request = std::make_shared<RecipesRequest>();
  command->add_option("NAME", request->name, "one in full: a name, or a TOML file");
  command->add_flag("--toml", request->toml, "print as a TOML file for --precision-recipe");
  command->add_flag("--json", request->json, "print one JSON object");
  return {command, [request] { return run(*request); }};
}

}  // namespace ranklab
