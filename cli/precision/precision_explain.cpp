// `ranklab precision explain`: the precision in which every linear module of a run computes, and which rule determines
// it. Computation only: no ranks are started.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/model_text.h"
#include "cli/common/style.h"
#include "cli/config/config_options.h"
#include "cli/precision/precision_subcommands.h"
#include "cli/precision/precision_text.h"
#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/config/linear_modules.h"
#include "core/config/precision_choice.h"
#include "core/config/state_types.h"
#include "core/precision/module_fold.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

struct ExplainRequest {
  std::unique_ptr<ConfigOptions> options;
  std::string module;
  bool json = false;
};

// Modules that users ask about although they contain no GEMM whose precision could be chosen.
const char* const kNoProducts = "not a linear layer: recipes do not change it";

std::vector<ModulePrecision> chosen_modules(const RunPlan& plan, const PrecisionPolicy& policy,
                                            const std::string& pattern) {
  if (pattern.empty()) return policy.modules();
  std::vector<ModulePrecision> chosen;
  std::vector<std::string> names;
  for (const PolicyModule& module : linear_modules(plan.config.model)) {
    names.push_back(without_numbers(module.name));
    if (!matches(pattern, module.name)) continue;
    const ModulePrecision* found = policy.find(module.name);
    chosen.push_back(
        found != nullptr
            ? *found
            : ModulePrecision{.module = module.name, .compute = policy.recipe().compute, .rule = kNoProducts});
  }
  RANKLAB_CHECK(!chosen.empty(), ErrorKind::kInvalidArgument, .where = "precision explain",
                .what = "no module has a name like this", .got = "--module " + quote(pattern),
                .want = "a name, or a pattern such as 'layers.*.mlp.*'",
                .fix = did_you_mean(without_numbers(pattern), names, "leave --module out to see all"));
  return chosen;
}

std::string module_table(const std::vector<ModulePrecision>& modules, const Style& style) {
  struct ModuleRow {
    std::string module, activation, weight, gradient, rule;
  };
  std::vector<ModuleRow> rows = {{"module", "activation", "weight", "gradient", "decided by"}};
  for (const ModuleGroup& group : fold_modules(modules)) {
    const ModulePrecision& m = *group.first;
    const std::string compute = m.rule == kNoProducts ? "-" : std::string(name(m.compute));
    rows.push_back({group.modules, tensor_text(m.linear.activation, compute), tensor_text(m.linear.weight, compute),
                    tensor_text(m.linear.gradient, compute), m.rule});
  }
  const auto widest = [&](std::string ModuleRow::*member) {
    size_t width = 0;
    for (const ModuleRow& row : rows) width = std::max(width, (row.*member).size());
    return static_cast<int>(width);
  };
  const int module = widest(&ModuleRow::module), activation = widest(&ModuleRow::activation),
            weight = widest(&ModuleRow::weight), gradient = widest(&ModuleRow::gradient);
  std::string text;
  for (const ModuleRow& row : rows) {
    const std::string line =
        strprintf("  %-*s  %-*s  %-*s  %-*s  %s", module, row.module.c_str(), activation, row.activation.c_str(),
                  weight, row.weight.c_str(), gradient, row.gradient.c_str(), row.rule.c_str());
    text += (text.empty() ? style.bold(line) : line) + "\n";
  }
  return text;
}

std::string kept_types_text(const StateTypes& types) {
  const auto text = [](DType dtype) { return std::string(name(dtype)); };
  std::string moments = "no moments";
  if (types.moments == 1) moments = "momentum " + text(types.exp_avg);
  if (types.moments == 2) moments = "moments " + text(types.exp_avg) + " and " + text(types.exp_avg_sq);
  if (types.matrix_moments < types.moments) moments += ", of hidden matrices " + text(types.exp_avg) + " alone";
  return (types.has_masters() ? "master weights " + text(types.main_params) : std::string("no master weights")) +
         ", gradients " + text(types.main_grads) + ", " + moments;
}

int64_t quantized_count(const PrecisionPolicy& policy) {
  return std::ranges::count_if(policy.modules(), [](const ModulePrecision& m) { return m.linear.quantized(); });
}

std::string explain_text(const RunPlan& plan, const PrecisionPolicy& policy,
                         const std::vector<ModulePrecision>& modules, const Style& style) {
  const PrecisionRecipe& recipe = policy.recipe();
  const int64_t quantized = quantized_count(policy);
  std::string text =
      strprintf("%s, recipe %s: parameters %s; %ld of %zu linear modules quantized\n", model_name(plan.config).c_str(),
                recipe.name.c_str(), std::string(name(recipe.compute)).c_str(), static_cast<long>(quantized),
                policy.modules().size());
  text += module_table(modules, style);
  if (const std::string products = products_text(recipe.linear); quantized > 0 && !products.empty())
    text += "products: " + products + "\n";
  return text + "kept: " + kept_types_text(state_types(plan)) +
         "\nsent: " + sent_text(recipe, plan.config.model.moe.enabled()) + "\n";
}

std::string explain_json(const RunPlan& plan, const PrecisionPolicy& policy,
                         const std::vector<ModulePrecision>& modules) {
  ordered_json rows = ordered_json::array();
  for (const ModulePrecision& m : modules) {
    ordered_json row = {{"module", m.module}, {"quantized", m.linear.quantized()}, {"compute", name(m.compute)}};
    if (m.linear.quantized()) row["linear"] = linear_json(m.linear);
    row["rule"] = m.rule;
    rows.push_back(std::move(row));
  }
  const StateTypes types = state_types(plan);
  return json_result({{"preset", plan.config.preset},
                      {"params", name(types.params)},
                      {"main_params", name(types.main_params)},
                      {"main_grads", name(types.main_grads)},
                      {"exp_avg", name(types.exp_avg)},
                      {"exp_avg_sq", name(types.exp_avg_sq)},
                      {"recipe", recipe_json(policy.recipe())},
                      {"linear_modules", policy.modules().size()},
                      {"quantized_modules", quantized_count(policy)},
                      {"modules", rows}});
}

int print_explained(const ExplainRequest& request) {
  const RunPlan plan = request.options->resolve(request.options->config());
  const PrecisionPolicy policy = explain_precision(plan.config);
  const std::vector<ModulePrecision> modules = chosen_modules(plan, policy, request.module);
  const std::string text =
      request.json ? explain_json(plan, policy, modules) : explain_text(plan, policy, modules, style_for(stdout));
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

PrecisionSubcommand add_precision_explain(CommandLine& app) {
  CommandLine* command =
      app.add_subcommand("explain", "format in which each module of a run computes, and the rule that decided it");
  auto request = std::make_shared<ExplainRequest>();
  command->add_option("--module", request->module, "a module, or a pattern of names (default: all)");
  command->add_flag("--json", request->json, "print one JSON object");
  TrainConfig defaults;  // an unsharded layout, unless the user gives one
  defaults.parallel.tp = defaults.parallel.pp = 1;
  request->options = std::make_unique<ConfigOptions>(*command, defaults);
  return {command, [request] { return print_explained(*request); }};
}

}  // namespace ranklab
