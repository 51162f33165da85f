#include "core/config/recompute_choice.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/config/precision_lists.h"

namespace ranklab {
namespace {

void check_modules(const TrainConfig& c) {
  if (c.recompute_granularity != "selective") return;
  const auto check = [](bool asked, bool there, const char* module, const char* what) {
    RANKLAB_CHECK(!asked || there, ErrorKind::kInvalidArgument, .where = "config",
                  .what = std::string("this model has no layer ") + what,
                  .got = std::string("--recompute-modules with ") + module, .want = "modules that it has",
                  .fix = std::string("take ") + module + " out");
  };
  check(c.recompute_modules.mlp, c.model.layer_count(&ModelConfig::has_dense_mlp) > 0, "mlp",
        c.model.is_hybrid() ? "with an MLP" : "without experts");
  check(c.recompute_modules.moe, c.model.moe.enabled(), "moe", "with experts");
}

}  // namespace

void check_recompute(const RunPlan& plan) {
  check_modules(plan.config);
  const TrainConfig& c = plan.config;
  const std::string flag = "--recompute-num-layers " + std::to_string(c.recompute_num_layers);
  RANKLAB_CHECK(c.recompute_num_layers >= 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--recompute-num-layers must not be negative", .got = std::to_string(c.recompute_num_layers),
                .want = "0 or more", .fix = "leave it out");
  RANKLAB_CHECK(c.recompute_num_layers == 0 || c.recompute_granularity == "full", ErrorKind::kInvalidArgument,
                .where = "config", .what = "--recompute-num-layers counts layers that are recomputed as a whole",
                .got = flag + ", --recompute-granularity " + c.recompute_granularity,
                .want = "--recompute-granularity full, or no --recompute-num-layers",
                .fix = "add that, or leave it out");
  const int64_t most = *std::max_element(plan.stage_layers.begin(), plan.stage_layers.end());
  RANKLAB_CHECK(c.recompute_num_layers <= most, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--recompute-num-layers is more than a pipeline stage has",
                .got = flag + ", at most " + std::to_string(most) + " layers a stage",
                .want = "at most " + std::to_string(most), .fix = "lower it, or leave it out for all layers");
}

RecomputedModules parse_recomputed_modules(const std::string& text) {
  constexpr const char* kFlag = "--recompute-modules";
  const std::vector<std::string> names = row_names(kRecomputedModules);
  RecomputedModules modules{.core_attn = false};
  const std::vector<std::string> parts = parse_list(kFlag, text);
  RANKLAB_CHECK(!parts.empty(), ErrorKind::kInvalidArgument, .where = "config",
                .what = std::string(kFlag) + " names no module", .got = quote(text),
                .want = "one or more of " + join(names, ", ") + ", separated by commas",
                .fix = "leave it out, or set --recompute-granularity none");
  for (const std::string& part : parts) {
    const auto row = std::ranges::find(kRecomputedModules, part, &RecomputedModuleName::name);
    RANKLAB_CHECK(row != std::end(kRecomputedModules), ErrorKind::kInvalidArgument, .where = "config",
                  .what = std::string(kFlag) + " has an unknown module", .got = quote(part),
                  .want = join(names, ", ") + ", separated by commas",
                  .fix = "correct it (outputs of norms and activations are recomputed unless --keep-cheap-outputs)");
    modules.*row->chosen = true;
  }
  return modules;
}

std::string names_of(const RecomputedModules& modules) {
  std::vector<std::string> names;
  for (const RecomputedModuleName& row : kRecomputedModules) {
    if (modules.*row.chosen) names.emplace_back(row.name);
  }
  return join(names, ",");
}

RecomputePolicy recompute_policy(const TrainConfig& c) {
  RecomputePolicy policy{.modules = c.recompute_modules, .num_layers = c.recompute_num_layers};
  if (c.recompute_granularity == "selective") policy.granularity = Recompute::kSelective;
  if (c.recompute_granularity == "full") policy.granularity = Recompute::kFull;
  if (c.recompute_method == "uniform") policy.method = RecomputeMethod::kUniform;
  return policy;
}

}  // namespace ranklab
