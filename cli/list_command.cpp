// `ranklab list presets | hardware | software | dispatchers | recipes | backends | combinations | sentinels |
// commands`: the values of --preset, --hardware, --software and --precision-recipe, the rejected combinations, the
// sentinels and all commands, as in the tables of docs/.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/command_tree.h"
#include "cli/common/json_output.h"
#include "cli/common/table.h"
#include "core/base/text.h"
#include "core/comm/backend.h"
#include "core/config/requirements.h"
#include "core/precision/recipe.h"
#include "core/sim/hardware_profile.h"
#include "core/spec/moe_dispatcher_names.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

using Json = nlohmann::ordered_json;

// A list as a table for people and as JSON.
struct Listing {
  Table table;
  Json rows = Json::array();
};

std::string code(const std::string& name) { return "`" + name + "`"; }

Listing presets() {
  Listing out{Table({"preset", "layers x hidden", "sequence", "parameters"})};
  for (const ModelPreset& preset : model_presets()) {
    const ModelConfig& c = preset.config;
    std::string parameters = human_count(static_cast<double>(c.parameter_count()));
    if (c.moe.enabled()) parameters += " (" + human_count(static_cast<double>(c.active_parameter_count())) + " active)";
    out.table.add({code(preset.name),
                   strprintf("%ld x %ld", static_cast<long>(c.num_layers), static_cast<long>(c.hidden_size)),
                   std::to_string(c.seq_length), parameters});
    out.rows.push_back({{"name", preset.name},
                        {"num_layers", c.num_layers},
                        {"hidden_size", c.hidden_size},
                        {"seq_length", c.seq_length},
                        {"parameters", c.parameter_count()},
                        {"active_parameters", c.active_parameter_count()}});
  }
  return out;
}

Listing hardware() {
  Listing out{Table({"`--hardware`", "machine", "compute capability", "fp32 / 16-bit TFLOP/s", "memory TB/s",
                     "links in / between nodes GB/s"})};
  for (const std::string& name : hardware_profile_names()) {
    const HardwareProfile p = load_hardware_profile(name);
    const std::string capability = p.compute_capability > 0 ? strprintf("%.1f", p.compute_capability) : "none";
    out.table.add({code(name), p.title, capability,
                   strprintf("%.4g / %.4g", p.peak_flops_fp32 * 1e-12, p.peak_flops_16bit * 1e-12),
                   strprintf("%.3g", p.memory_bandwidth * 1e-12),
                   strprintf("%.4g / %.4g", p.intra_node.bandwidth_bytes_per_ns, p.inter_node.bandwidth_bytes_per_ns)});
    out.rows.push_back({{"name", name},
                        {"title", p.title},
                        {"compute_capability", p.compute_capability},
                        {"peak_flops_fp32", p.peak_flops_fp32},
                        {"peak_flops_16bit", p.peak_flops_16bit},
                        {"memory_bytes_per_s", p.memory_bandwidth},
                        {"intra_node_bytes_per_ns", p.intra_node.bandwidth_bytes_per_ns},
                        {"inter_node_bytes_per_ns", p.inter_node.bandwidth_bytes_per_ns}});
  }
  return out;
}

Listing dispatchers() {
  Listing out{Table({"`--moe-token-dispatcher-type`", "how tokens are sent",
                     "elements sent per rank (T tokens of width H, K experts each)", "from"})};
  for (const DispatcherText& d : kDispatcherTexts) {
    out.table.add({code(d.name), d.idea, d.sends, d.source});
    out.rows.push_back({{"name", d.name}, {"idea", d.idea}, {"sends", d.sends}, {"source", d.source}});
  }
  return out;
}

Listing recipes() {
  Listing out{Table({"`--precision-recipe`", "what it does", "from"})};
  for (const PrecisionRecipe& recipe : precision_recipes()) {
    out.table.add({code(recipe.name), recipe.summary, recipe.source});
    out.rows.push_back({{"name", recipe.name}, {"summary", recipe.summary}, {"source", recipe.source}});
  }
  return out;
}

// "yes", or which tensors have it: those on the host, or on a GPU.
std::string where_text(const Backend& row, Capability capability) {
  const bool host = row.on_host.has(capability), gpu = row.on_gpu.has(capability);
  if (!host && !gpu) return "no";
  if ((host || row.on_host.empty()) && (gpu || row.on_gpu.empty())) return "yes";
  return host ? "not on a GPU" : "on a GPU";
}

Listing backend_table() {
  std::vector<std::string> head = {"capability"};
  for (const Backend& row : backends()) head.push_back(strprintf("`--backend %s`: %s", row.name, row.help));
  Listing out{Table(head)};
  for (size_t i = 0; i < kCapabilityTexts.size(); ++i) {
    std::vector<std::string> cells = {kCapabilityTexts[i]};
    Json can;
    for (const Backend& row : backends()) {
      cells.push_back(where_text(row, static_cast<Capability>(i)));
      can[row.name] = {{"on_host", row.on_host.has(static_cast<Capability>(i))},
                       {"on_gpu", row.on_gpu.has(static_cast<Capability>(i))}};
    }
    out.table.add(cells);
    out.rows.push_back({{"capability", kCapabilityTexts[i]}, {"backends", can}});
  }
  return out;
}

Listing combinations() {
  Listing out{Table({"asked for", "excluded", "why"})};
  for (const Requirement& row : requirements()) {
    const std::string feature = text_of(row.feature),
                      other = row.excludes ? text_of(*row.excludes) : text_of(*row.needs);
    out.table.add({code(feature), row.excludes ? "with " + code(other) : "without " + other, row.why});
    out.rows.push_back({{"feature", feature}, {row.excludes ? "excludes" : "needs", other}, {"why", row.why}});
  }
  return out;
}

// "warn above 3, stop above 10"
std::string bounds_text(const SentinelRow& row) {
  std::string text;
  if (!row.warn.open()) text = "warn " + row.warn.text();
  if (row.stop.open()) return text;
  text += (text.empty() ? "stop " : ", stop ") + row.stop.text();
  return row.in_a_row > 1 ? text + strprintf(", %d in a row", row.in_a_row) : text;
}

Listing sentinels() {
  Listing out{Table({"`--sentinel`", "tag", "measures", "mode", "bounds", "action"})};
  for (const SentinelRow& row : sentinel_rows()) {
    const std::string bounds = bounds_text(row),
                      mode = row.mode == SentinelMode::kOff ? "any, with --watch" : std::string(name(row.mode)),
                      action = bounds.empty() ? std::string() : std::string(name(row.action));
    out.table.add({code(row.name), code(row.tag), row.formula, mode, bounds, action});
    out.rows.push_back({{"sentinel", row.name},
                        {"tag", row.tag},
                        {"measures", row.formula},
                        {"mode", mode},
                        {"bounds", bounds},
                        {"action", action}});
  }
  return out;
}

Listing software() {
  Listing out{Table({"`--software`", "whose kernels", "elementwise", "GEMMs", "GEMMs in 8 and 4 bits", "attention",
                     "quantization", "loss", "collectives", "activations kept", "bytes per logit", "reserve"})};
  const auto times = [](double factor) { return strprintf("%.3g", factor); };
  const auto each_logit = [&](const SoftwareMemory& memory) {
    const bool same = memory.shared_logit_bytes == memory.logit_bytes;
    return times(4 + memory.logit_bytes) + (same ? "" : ", " + times(4 + memory.shared_logit_bytes));
  };
  for (const Software& row : software_rows()) {
    const auto& k = row.kernels;
    out.table.add({code(row.name), row.what, times(k[0]), times(k[1]), times(k[2]), times(k[3]), times(k[4]),
                   times(k[5]), times(row.collectives), times(row.memory.activations), each_logit(row.memory),
                   times(row.memory.reserve)});
    out.rows.push_back({{"software", row.name},
                        {"about", row.what},
                        {"kernels", k},
                        {"collectives", row.collectives},
                        {"memory",
                         {{"activations", row.memory.activations},
                          {"bytes_a_logit", 4 + row.memory.logit_bytes},
                          {"bytes_a_shared_logit", 4 + row.memory.shared_logit_bytes},
                          {"reserve", row.memory.reserve}}}});
  }
  return out;
}

// Whether a flag is the command's own: not one that every command has, that comes with train's settings, or that is
// torchrun's spelling of another (with underscores).
bool is_own(const OptionEntry& option, bool settings) {
  static const std::set<std::string> kEverywhere = {"--help", "--help-all", "--color"},
                                     kWithSettings = {"--config", "--set", "--strict"};
  const std::string& name = option.names[0];
  return !option.is_setting && !kEverywhere.contains(name) && !(settings && kWithSettings.contains(name)) &&
         name.find('_') == std::string::npos;
}

// The commands that can be run, with the flags of their own.
Listing commands(const CommandLine& program) {
  Listing out{Table({"command", "what it does", "flags of its own"})};
  for (const CommandEntry& entry : command_tree(program)) {
    if (!entry.subcommands.empty()) continue;
    const bool settings = std::any_of(entry.options.begin(), entry.options.end(),
                                      [](const OptionEntry& option) { return option.is_setting; });
    std::vector<std::string> own;
    if (settings) own.push_back("the settings of `train`");
    Json flags = Json::array();
    for (const OptionEntry& option : entry.options) {
      flags.push_back({{"names", option.names},
                       {"help", option.help},
                       {"takes_value", option.takes_value},
                       {"values", option.values},
                       {"setting", option.is_setting}});
      if (is_own(option, settings)) own.push_back(code(option.names[0]));
    }
    out.table.add({code(entry.path), entry.about, own.empty() ? "-" : join(own, ", ")});
    out.rows.push_back({{"command", entry.path}, {"about", entry.about}, {"flags", flags}});
  }
  return out;
}

struct ListRow {
  const char* name;
  const char* about;
  Listing (*make)();
};
constexpr ListRow kLists[] = {
    {"presets", "model presets", presets},
    {"hardware", "hardware profiles", hardware},
    {"software", "software models of the planner: whose kernels, relative to this project's", software},
    {"dispatchers", "how tokens are sent to their experts", dispatchers},
    {"recipes", "precision recipes", recipes},
    {"backends", "capabilities of each backend", backend_table},
    {"combinations", "excluded combinations of settings, with the reason", combinations},
    {"sentinels", "sentinels: monitored metrics, their bounds and actions", sentinels},
};

}  // namespace

CommandAction setup_list(CommandLine& app) {
  app.require_subcommand(0, 1);
  app.footer("Examples:\n  ranklab list presets\n  ranklab list hardware --json");
  auto json = std::make_shared<bool>(false);
  std::vector<std::pair<CommandLine*, const ListRow*>> lists;
  for (const ListRow& row : kLists) {
    CommandLine* sub = app.add_subcommand(row.name, row.about);
    sub->add_flag("--json", *json, "print one JSON object");
    lists.emplace_back(sub, &row);
  }
  CommandLine* all = app.add_subcommand("commands", "all commands with their own flags");
  all->add_flag("--json", *json, "print one JSON object");
  const auto print = [json](const char* name, const Listing& listing) {
    std::fputs((*json ? json_result({{name, listing.rows}}) : listing.table.for_stdout()).c_str(), stdout);
    return 0;
  };
  return [&app, print, all, lists] {
    if (all->parsed()) return print("commands", commands(*app.parent()));
    for (const auto& [sub, row] : lists) {
      if (sub->parsed()) return print(row->name, row->make());
    }
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
