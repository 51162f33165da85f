// ranklab model info: what a model consists of, what a token costs, and what a rank of a layout holds.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/config_options.h"
#include "cli/json_output.h"
#include "cli/pipeline_text.h"
#include "cli/style.h"
#include "core/base/text.h"
#include "core/model/module_table.h"
#include "core/plan/rank_memory.h"

namespace ranklab {
namespace {

std::string shape_text(const ModuleRow& row) { return "[" + join(std::span<const int64_t>(row.shape), ", ") + "]"; }

double share(const ModuleRow& row, const ModelConfig& model) {
  return 100 * static_cast<double>(row.parameters()) / static_cast<double>(model.parameter_count());
}

double forward_flops(const ModelConfig& model) { return model.training_flops_per_token(model.seq_length) / 3; }

std::string headline(const RunPlan& plan) {
  const ModelConfig& m = plan.config.model;
  return strprintf("%s: %s parameters, %ld layers, hidden %ld, %ld heads, vocabulary %ld, sequence %ld",
                   plan.config.preset.c_str(), human_count(static_cast<double>(m.parameter_count())).c_str(),
                   static_cast<long>(m.num_layers), static_cast<long>(m.hidden_size),
                   static_cast<long>(m.num_attention_heads), static_cast<long>(m.vocab_size),
                   static_cast<long>(m.seq_length));
}

std::string info_text(const RunPlan& plan, const Style& style) {
  const ModelConfig& m = plan.config.model;
  std::string text = style.bold(headline(plan)) + "\n";
  text +=
      strprintf("  a token   %s FLOP forward, %s FLOP in training (attention at the whole sequence, causal)\n\n",
                human_count(forward_flops(m)).c_str(), human_count(m.training_flops_per_token(m.seq_length)).c_str());
  text += style.bold(strprintf("  %-30s %-16s %6s %14s %7s  %-13s %12s", "parameter", "shape", "layers", "parameters",
                               "share", "split by tp", "FLOP/token")) +
          "\n";
  for (const ModuleRow& row : module_table(m)) {
    const std::string flops = row.multiplies ? human_count(row.forward_flops_per_token()) : "-";
    text += strprintf("  %-30s %-16s %6ld %14ld %6.2f%%  %-13s %12s\n", row.parameter.c_str(), shape_text(row).c_str(),
                      static_cast<long>(row.copies), static_cast<long>(row.parameters()), share(row, m),
                      row.tied ? "the embedding" : name(row.split), flops.c_str());
  }
  text += strprintf("  %-30s %-16s %6s %14ld\n\n", "together", "", "", static_cast<long>(m.parameter_count()));
  const RankMemory memory = fullest_rank(plan);
  const std::string whose = plan.config.parallel.pp > 1 ? strprintf("pipeline rank %d, the fullest", memory.pp_rank)
                                                        : std::string("every rank");
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  text += "  a rank    of " + layout_text(plan, true) + ", " + plan.config.params_dtype + ", " + whose + ": " +
          style.bold(bytes(memory.together())) + "\n";
  text += "            parameters " + bytes(memory.parameters) + ", gradients " + bytes(memory.gradients) +
          ", optimizer " + bytes(memory.optimizer) +
          strprintf(", activations %s (estimate, within %.0f %%)\n",
                    bytes(memory.activations.peak() + memory.activations.gathered).c_str(), 100 * kActivationTolerance);
  return text;
}

std::string info_markdown(const RunPlan& plan) {
  std::string text = "| parameter | shape | layers | parameters | split by tp |\n|---|---|---|---|---|\n";
  for (const ModuleRow& row : module_table(plan.config.model))
    text += strprintf("| `%s` | %s | %ld | %ld | %s |\n", row.parameter.c_str(), shape_text(row).c_str(),
                      static_cast<long>(row.copies), static_cast<long>(row.parameters()),
                      row.tied ? "the embedding" : name(row.split));
  return text + strprintf("| together | | | %ld | |\n", static_cast<long>(plan.config.model.parameter_count()));
}

std::string info_json(const RunPlan& plan) {
  const ModelConfig& m = plan.config.model;
  nlohmann::ordered_json modules = nlohmann::ordered_json::array();
  for (const ModuleRow& row : module_table(m)) {
    modules.push_back({{"parameter", row.parameter},
                       {"shape", row.shape},
                       {"copies", row.copies},
                       {"parameters", row.parameters()},
                       {"split", row.split == ModuleSplit::kReplicated ? nlohmann::ordered_json() : name(row.split)},
                       {"tied", row.tied},
                       {"forward_flops_per_token", row.forward_flops_per_token()}});
  }
  const RankMemory memory = fullest_rank(plan);
  return json_result({{"preset", plan.config.preset},
                      {"total_parameters", m.parameter_count()},
                      {"active_parameters", m.parameter_count()},
                      {"forward_flops_per_token", forward_flops(m)},
                      {"training_flops_per_token", m.training_flops_per_token(m.seq_length)},
                      {"modules", modules},
                      {"rank",
                       {{"layout", layout_text(plan, true)},
                        {"pp_rank", memory.pp_rank},
                        {"parameters_bytes", memory.parameters},
                        {"gradients_bytes", memory.gradients},
                        {"optimizer_bytes", memory.optimizer},
                        {"activations_bytes", memory.activations.peak()},
                        {"gathered_bytes", memory.activations.gathered},
                        {"together_bytes", memory.together()}}}});
}

}  // namespace

CommandAction setup_model(CLI::App& app) {
  struct Given {
    std::unique_ptr<ConfigOptions> options;
    std::string preset;
    bool json = false, markdown = false;
  };
  auto given = std::make_shared<Given>();
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab model info llama_8b --tp 8\n  ranklab model info gpt2_124m --num-layers 24 --markdown");
  CLI::App* info = app.add_subcommand("info", "parameters by module, FLOPs of a token, bytes of a rank");
  given->options = std::make_unique<ConfigOptions>(*info);
  info->add_option("PRESET", given->preset, "a name of `ranklab list presets`; settings change its numbers");
  info->add_flag("--json", given->json, "print one JSON object");
  info->add_flag("--markdown", given->markdown, "print the table in Markdown");
  return [&app, info, given] {
    if (!info->parsed()) {
      std::printf("%s", app.help().c_str());
      return 0;
    }
    if (!given->preset.empty()) given->options->set("model.preset", given->preset);
    const RunPlan plan = given->options->resolve(given->options->config());
    const std::string text = given->json       ? info_json(plan)
                             : given->markdown ? info_markdown(plan)
                                               : info_text(plan, style_for(stdout));
    std::fputs(text.c_str(), stdout);
    return 0;
  };
}

}  // namespace ranklab
