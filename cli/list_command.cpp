// ranklab list presets | hardware | dispatchers | recipes | backends | combinations | sentinels: the values of
// --preset, --hardware and --precision-recipe, and the refused combinations, as in the tables of docs/.
#include <cstdio>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "core/base/text.h"
#include "core/comm/backend.h"
#include "core/config/requirements.h"
#include "core/precision/recipe.h"
#include "core/sim/hardware_profile.h"
#include "core/spec/moe_dispatcher_names.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

int list_presets() {
  std::printf("| preset | layers x hidden | sequence | parameters |\n|---|---|---|---|\n");
  for (const ModelPreset& preset : model_presets()) {
    const ModelConfig& c = preset.config;
    std::string parameters = human_count(static_cast<double>(c.parameter_count()));
    if (c.moe.enabled()) parameters += " (" + human_count(static_cast<double>(c.active_parameter_count())) + " active)";
    std::printf("| `%s` | %ld x %ld | %ld | %s |\n", preset.name.c_str(), static_cast<long>(c.num_layers),
                static_cast<long>(c.hidden_size), static_cast<long>(c.seq_length), parameters.c_str());
  }
  return 0;
}

int list_hardware() {
  std::printf(
      "| `--hardware` | machine | fp32 / 16-bit TFLOP/s | memory TB/s | links in / between nodes GB/s "
      "|\n|---|---|---|---|---|\n");
  for (const std::string& name : hardware_profile_names()) {
    const HardwareProfile p = load_hardware_profile(name);
    std::printf("| `%s` | %s | %.4g / %.4g | %.3g | %.4g / %.4g |\n", name.c_str(), p.title.c_str(),
                p.peak_flops_fp32 * 1e-12, p.peak_flops_16bit * 1e-12, p.memory_bandwidth * 1e-12,
                p.intra_node.bandwidth_bytes_per_ns, p.inter_node.bandwidth_bytes_per_ns);
  }
  return 0;
}

int list_dispatchers() {
  std::printf(
      "| `--moe-token-dispatcher-type` | how tokens travel | a rank sends (T tokens of width H, K experts each) | from "
      "|\n|---|---|---|---|\n");
  for (const DispatcherText& d : kDispatcherTexts)
    std::printf("| `%s` | %s | %s | %s |\n", d.name, d.idea, d.sends, d.source);
  return 0;
}

int list_recipes() {
  std::printf("| `--precision-recipe` | what it does | from |\n|---|---|---|\n");
  for (const PrecisionRecipe& recipe : precision_recipes())
    std::printf("| `%s` | %s | %s |\n", recipe.name.c_str(), recipe.summary.c_str(), recipe.source.c_str());
  return 0;
}

// "yes", or where: with tensors on the host, or on a GPU.
std::string where_text(const Backend& row, Capability capability) {
  const bool host = row.on_host.has(capability), gpu = row.on_gpu.has(capability);
  if (!host && !gpu) return "no";
  if ((host || row.on_host.empty()) && (gpu || row.on_gpu.empty())) return "yes";
  return host ? "not on a GPU" : "on a GPU";
}

int list_backends() {
  std::string head = "| ranks have |", line = "|---|";
  for (const Backend& row : backends()) {
    head += strprintf(" `--backend %s`: %s |", row.name, row.help);
    line += "---|";
  }
  std::printf("%s\n%s\n", head.c_str(), line.c_str());
  for (size_t i = 0; i < kCapabilityTexts.size(); ++i) {
    std::printf("| %s |", kCapabilityTexts[i]);
    for (const Backend& row : backends()) std::printf(" %s |", where_text(row, static_cast<Capability>(i)).c_str());
    std::printf("\n");
  }
  return 0;
}

int list_combinations() {
  std::printf("| asked for | does not go | why |\n|---|---|---|\n");
  for (const Requirement& row : requirements()) {
    const std::string other =
        row.excludes ? "with `" + text_of(*row.excludes) + "`" : std::string("without ") + text_of(*row.needs);
    std::printf("| `%s` | %s | %s |\n", text_of(row.feature).c_str(), other.c_str(), row.why.c_str());
  }
  return 0;
}

// "warn above 3, stop above 10"
std::string bounds_text(const SentinelRow& row) {
  std::string text;
  if (!row.warn.open()) text = "warn " + row.warn.text();
  if (row.stop.open()) return text;
  text += (text.empty() ? "stop " : ", stop ") + row.stop.text();
  return row.in_a_row > 1 ? text + strprintf(", %d in a row", row.in_a_row) : text;
}

int list_sentinels() {
  std::printf("| `--sentinel` | tag | measures | mode | bounds | action |\n|---|---|---|---|---|---|\n");
  for (const SentinelRow& row : sentinel_rows()) {
    const std::string bounds = bounds_text(row);
    std::printf("| `%s` | `%s` | %s | %s | %s | %s |\n", row.name, row.tag, row.formula,
                std::string(name(row.mode)).c_str(), bounds.c_str(),
                bounds.empty() ? "" : std::string(name(row.action)).c_str());
  }
  return 0;
}

}  // namespace

CommandAction setup_list(CommandLine& app) {
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab list presets\n  ranklab list hardware\n  ranklab list dispatchers\n  ranklab list recipes\n"
      "  ranklab list backends\n  ranklab list combinations\n  ranklab list sentinels");
  CommandLine* presets = app.add_subcommand("presets", "model presets");
  CommandLine* hardware = app.add_subcommand("hardware", "hardware profiles");
  CommandLine* dispatchers = app.add_subcommand("dispatchers", "how tokens travel to their experts");
  CommandLine* recipes = app.add_subcommand("recipes", "precision recipes");
  CommandLine* backend_table = app.add_subcommand("backends", "what the ranks of each backend can do");
  CommandLine* combinations = app.add_subcommand("combinations", "what does not go together, and why");
  CommandLine* sentinels = app.add_subcommand("sentinels", "the numbers that a run is held to");
  return [&app, presets, hardware, dispatchers, recipes, backend_table, combinations, sentinels] {
    if (presets->parsed()) return list_presets();
    if (hardware->parsed()) return list_hardware();
    if (dispatchers->parsed()) return list_dispatchers();
    if (recipes->parsed()) return list_recipes();
    if (backend_table->parsed()) return list_backends();
    if (combinations->parsed()) return list_combinations();
    if (sentinels->parsed()) return list_sentinels();
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
