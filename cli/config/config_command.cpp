// `ranklab config show | validate | schema | diff | from-megatron | from-torchtitan`: settings from every source,
// without running anything.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/pipeline_text.h"
#include "cli/config/config_options.h"
#include "cli/config/megatron_line.h"
#include "cli/config/settings_json.h"
#include "cli/config/torchtitan_config.h"
#include "core/base/log.h"
#include "core/config/dump_choice.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/schema.h"
#include "core/config/settings/toml.h"

namespace ranklab {
namespace {

MergedConfig read_file(const std::string& path) { return merge_config({}, read_config_toml(path)); }

int show(const ConfigOptions& options, bool origin, bool json) {
  const MergedConfig merged = options.merged();
  if (!json) {
    const auto remark = [&](const std::string& key) { return origin ? merged.origins.at(key) : std::string(); };
    std::printf("%s", config_toml(merged.config, remark).c_str());
    return 0;
  }
  nlohmann::ordered_json data = settings_json(merged.config);
  if (origin) {
    for (auto& [key, value] : data.items()) value = {{"value", value}, {"origin", merged.origins.at(key)}};
  }
  std::fputs(json_result(data).c_str(), stdout);
  return 0;
}

int validate_file(const std::string& path, bool json) {
  const MergedConfig file = read_file(path);
  const RunPlan plan = resolve(file.config, file.origins);
  check_reached(plan);
  if (json) {
    std::fputs(json_result({{"file", path},
                            {"preset", plan.config.preset},
                            {"world_size", plan.config.parallel.world},
                            {"layout", layout_text(plan)},
                            {"num_microbatches", plan.num_microbatches},
                            {"micro_batch_size", plan.micro_batch_size}})
                   .c_str(),
               stdout);
    return 0;
  }
  std::printf("%s: valid; %s on %d ranks, %s, %ld microbatches of %ld\n", path.c_str(), plan.config.preset.c_str(),
              plan.config.parallel.world, layout_text(plan).c_str(), static_cast<long>(plan.num_microbatches),
              static_cast<long>(plan.micro_batch_size));
  return 0;
}

int diff(const std::string& a_path, const std::string& b_path, bool json) {
  const TrainConfig a = read_file(a_path).config;
  const TrainConfig b = read_file(b_path).config;
  if (json) {
    const nlohmann::ordered_json left = settings_json(a), right = settings_json(b);
    nlohmann::ordered_json data = nlohmann::ordered_json::object();
    for (const auto& [key, value] : left.items())
      if (value != right.at(key)) data[key] = {{"a", value}, {"b", right.at(key)}};
    std::fputs(json_result({{"differences", data}}).c_str(), stdout);
    return 0;
  }
  int differences = 0;
  for (const ConfigField& field : config_fields()) {
    const std::string left = field.get(a);
    const std::string right = field.get(b);
    if (left == right) continue;
    ++differences;
    std::printf("%-32s %s -> %s\n", field.key.c_str(), left.c_str(), right.c_str());
  }
  if (differences == 0) std::printf("no differences\n");
  return 0;
}

int show_foreign(const ForeignConfig& line, bool json) {
  const MergedConfig merged = merge_config({}, line.settings);
  check_reached(resolve(merged.config, merged.origins));
  if (json) {
    const nlohmann::ordered_json all = settings_json(merged.config);
    nlohmann::ordered_json settings = nlohmann::ordered_json::object();
    for (const ConfigSetting& one : line.settings)
      settings[one.key] = {{"value", all.at(one.key)}, {"origin", one.origin}};
    std::fputs(json_result({{"settings", settings}, {"left_out", line.left_out}}).c_str(), stdout);
    return 0;
  }
  for (const std::string& one : line.left_out) log_warning(one);
  std::fputs(given_toml(merged, line.settings).c_str(), stdout);
  return 0;
}

}  // namespace

CommandAction setup_config(CommandLine& app) {
  struct Given {
    std::unique_ptr<ConfigOptions> options;
    bool origin = false, json = false;
    std::string file, a, b;
    std::vector<std::string> words;
  };
  auto given = std::make_shared<Given>();
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab config show --origin --tp 4\n  ranklab config diff a.toml b.toml\n"
      "  ranklab config from-megatron --num-layers 32 --hidden-size 4096 ... > run.toml\n"
      "  ranklab config from-torchtitan NGPU=64 llama3_70b.toml --training.seq_len 4096 > run.toml");
  CommandLine* show_app = app.add_subcommand("show", "print every setting as train would use it");
  show_app->add_flag("--origin", given->origin, "show where each value came from");
  show_app->add_flag("--json", given->json, "print JSON instead of TOML");
  given->options = std::make_unique<ConfigOptions>(*show_app);
  CommandLine* validate_app = app.add_subcommand("validate", "check a file and every constraint");
  validate_app->add_option("FILE", given->file, "TOML file")->required();
  validate_app->add_flag("--json", given->json, "print one JSON object");
  CommandLine* schema_app = app.add_subcommand("schema", "print a JSON Schema of all settings");
  CommandLine* diff_app = app.add_subcommand("diff", "list settings that differ between two files");
  diff_app->add_option("A", given->a, "TOML file")->required();
  diff_app->add_option("B", given->b, "TOML file")->required();
  diff_app->add_flag("--json", given->json, "print one JSON object");
  CommandLine* megatron_app = app.add_subcommand(
      "from-megatron", "translate a command line of Megatron-LM's pretrain_gpt.py into settings, as TOML");
  megatron_app->add_flag("--json", given->json, "print one JSON object");
  megatron_app->add_option("WORDS", given->words, "the unchanged command line, with or without its torchrun")
      ->required()
      ->takes_rest();
  CommandLine* torchtitan_app = app.add_subcommand(
      "from-torchtitan", "translate a torchtitan configuration (file and overrides) into settings, as TOML");
  torchtitan_app->add_flag("--json", given->json, "print one JSON object");
  torchtitan_app->add_option("WORDS", given->words, "NGPU=N FILE.toml --section.key value ..., in any order")
      ->required()
      ->takes_rest();
  return [&app, megatron_app, torchtitan_app, show_app, validate_app, schema_app, diff_app, given] {
    if (show_app->parsed()) return show(*given->options, given->origin, given->json);
    if (validate_app->parsed()) return validate_file(given->file, given->json);
    if (megatron_app->parsed()) return show_foreign(read_megatron_line(given->words), given->json);
    if (torchtitan_app->parsed()) return show_foreign(read_torchtitan_config(given->words), given->json);
    if (diff_app->parsed()) return diff(given->a, given->b, given->json);
    std::printf("%s", schema_app->parsed() ? config_json_schema().c_str() : app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
