// `ranklab model info`: a model's modules, the cost of a token, and the memory of a layout's ranks.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/memory_json.h"
#include "cli/common/model_text.h"
#include "cli/common/picture_file.h"
#include "cli/common/pipeline_text.h"
#include "cli/common/style.h"
#include "cli/config/config_options.h"
#include "cli/model/model_picture.h"
#include "cli/model/model_stats.h"
#include "cli/model/roofline_text.h"
#include "cli/model/saved_model.h"
#include "cli/model/weight_histograms.h"
#include "cli/training_module.h"
#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/plan/step_time.h"
#include "core/spec/module_table.h"

namespace ranklab {
namespace {

double share(const ModuleRow& row, const ModelCounts& counts) {
  return 100 * static_cast<double>(row.parameters()) / static_cast<double>(counts.total + counts.mtp);
}

ModelCounts counts_of(const RunPlan& plan) { return count_model(plan.config.model, plan.config.model.seq_length); }

// The table with each parameter once if layers with and without experts alternate: `layers` then counts the layers of
// all such groups.
std::vector<ModuleRow> shown_rows(const ModelConfig& model) {
  std::vector<ModuleRow> table = module_table(model);
  if (!model.layers_take_turns()) return table;
  std::vector<ModuleRow> once;
  for (ModuleRow& row : table) {
    const auto same = std::ranges::find_if(
        once, [&](const ModuleRow& other) { return other.parameter == row.parameter && other.mtp == row.mtp; });
    if (same == once.end()) {
      once.push_back(std::move(row));
    } else {
      same->layers += row.layers;
    }
  }
  return once;
}

// "61", "3-60" for some layers, "3-60 x 256" for experts, "24 of 48" where layers take turns
std::string layers_text(const ModuleRow& row, const ModelConfig& model) {
  const int64_t all = row.mtp ? model.mtp_modules() : model.num_layers;
  const bool some = row.layers != all && row.parameter.find('*') != std::string::npos;
  const std::string range = std::to_string(row.first_layer) + "-" + std::to_string(row.first_layer + row.layers - 1);
  const std::string part = model.layers_take_turns()
                               ? strprintf("%ld of %ld", static_cast<long>(row.layers), static_cast<long>(all))
                               : range;
  const std::string text = some ? part : std::to_string(row.layers);
  return row.per_layer == 1 ? text : text + " x " + std::to_string(row.per_layer);
}

std::string split_text(const ModuleRow& row) {
  if (row.tied) return row.mtp ? "the model's" : "the embedding";
  return row.is_expert() ? std::string("ep; etp ") + name(row.split) : name(row.split);
}

std::string headline(const RunPlan& plan, const ModelCounts& counts) {
  const ModelConfig& m = plan.config.model;
  std::string text = model_name(plan.config) + ": " + counts_text(counts);
  text += strprintf(", %s, hidden %ld, %s, vocabulary %ld, sequence %ld", counted(m.num_layers, "layer").c_str(),
                    static_cast<long>(m.hidden_size), counted(m.num_attention_heads, "head").c_str(),
                    static_cast<long>(m.vocab_size), static_cast<long>(m.seq_length));
  return text;
}

// "2 modules"; "1 module, applied 2 times,"
std::string mtp_text(const ModelConfig& m) {
  if (!m.repeats_mtp()) return counted(m.mtp_num_layers, "module");
  return strprintf("1 module, applied %ld times,", static_cast<long>(m.mtp_num_layers));
}

std::string token_text(const RunPlan& plan, const ModelCounts& counts) {
  const ModelConfig& m = plan.config.model;
  std::string text =
      strprintf("  a token   %s FLOP forward, %s FLOP in training (attention at the whole sequence, causal)\n",
                human_count(counts.forward_flops_per_token).c_str(),
                human_count(m.training_flops_per_token(m.seq_length)).c_str());
  if (counts.mtp > 0) {
    text += strprintf(
        "  MTP       %s with %s parameters in total, %s of them active, only in training: %s FLOP "
        "forward with the model's head\n",
        mtp_text(m).c_str(), human_count(static_cast<double>(counts.mtp)).c_str(),
        human_count(static_cast<double>(counts.mtp_active)).c_str(),
        human_count(counts.mtp_forward_flops_per_token).c_str());
  }
  return text + "  KV cache  " + cache_text(plan) + "\n  made of   " + parts_text(m) + "\n";
}

std::string module_text(const ModelConfig& m, const ModelCounts& counts, const Style& style) {
  const std::vector<ModuleRow> table = shown_rows(m);
  int widest = 9;
  for (const ModuleRow& row : table) widest = std::max(widest, static_cast<int>(row.parameter.size()));
  std::string text = style.bold(strprintf("  %-*s %-15s %10s %14s %7s  %-20s %10s", widest, "parameter", "shape",
                                          "layers", "parameters", "share", "split by tp", "FLOP/token")) +
                     "\n";
  for (const ModuleRow& row : table) {
    const std::string flops = row.multiplies ? human_count(row.forward_flops_per_token()) : "-";
    text += strprintf("  %-*s %-15s %10s %14ld %6.2f%%  %-20s %10s\n", widest, row.parameter.c_str(),
                      shape_text(row.shape).c_str(), layers_text(row, m).c_str(), static_cast<long>(row.parameters()),
                      share(row, counts), split_text(row).c_str(), flops.c_str());
  }
  return text + strprintf("  %-*s %-15s %10s %14ld\n\n", widest, "together", "", "",
                          static_cast<long>(counts.total + counts.mtp));
}

// The rank that the memory is shown for.
std::string whose_text(const RunPlan& plan, const RankRecord& memory) {
  return "of " + layout_text(plan, true) + ", " + std::string(name(plan.config.element_dtype())) + ", " +
         counted(plan.num_microbatches, "microbatch", "es") + " of " + counted(plan.micro_batch_size, "sequence") +
         ", " +
         (plan.config.parallel.pp > 1 ? strprintf("pipeline rank %d, the fullest", memory.pp_rank)
                                      : std::string("every rank"));
}

std::string rank_text(const RunPlan& plan, const std::string& layout_note, const Style& style) {
  const StepRecord record = training_functions().record_step(plan);
  const RankRecord& memory = record.fullest();
  std::string parts;
  for (size_t c = 0; c < memory.at_peak.size(); ++c) {
    if (memory.at_peak[c] == 0) continue;
    parts += (parts.empty() ? "" : ", ") + std::string(name(static_cast<MemoryCategory>(c))) + " " +
             human_bytes(static_cast<double>(memory.at_peak[c]));
  }
  return "  a rank    " + whose_text(plan, memory) + ": " +
         style.bold(human_bytes(static_cast<double>(together(memory.at_peak)))) + "\n            " + parts +
         strprintf(" (estimate of its peak, within %.0f %%", 100 * kPeakTolerance) + tolerance_condition(plan) + ")\n" +
         (layout_note.empty() ? "" : "           " + layout_note + "\n");
}

std::string info_text(const RunPlan& plan, const std::string& layout_note, const Style& style) {
  const ModelCounts counts = counts_of(plan);
  return style.bold(headline(plan, counts)) + "\n" + token_text(plan, counts) + "\n" +
         module_text(plan.config.model, counts, style) + rank_text(plan, layout_note, style);
}

std::string info_markdown(const RunPlan& plan) {
  const ModelCounts counts = counts_of(plan);
  std::string text = "| parameter | shape | layers | parameters | active | split by tp |\n|---|---|---|---|---|---|\n";
  for (const ModuleRow& row : shown_rows(plan.config.model))
    text += strprintf("| `%s` | %s | %s | %ld | %ld | %s |\n", row.parameter.c_str(), shape_text(row.shape).c_str(),
                      layers_text(row, plan.config.model).c_str(), static_cast<long>(row.parameters()),
                      static_cast<long>(row.active_parameters()), split_text(row).c_str());
  text +=
      strprintf("| the model | | | %ld | %ld | |\n", static_cast<long>(counts.total), static_cast<long>(counts.active));
  if (counts.mtp > 0)
    text += strprintf("| its MTP modules | | | %ld | %ld | |\n", static_cast<long>(counts.mtp),
                      static_cast<long>(counts.mtp_active));
  return text;
}

nlohmann::ordered_json modules_json(const ModelConfig& model) {
  nlohmann::ordered_json modules = nlohmann::ordered_json::array();
  for (const ModuleRow& row : module_table(model)) {
    modules.push_back({{"parameter", row.parameter},
                       {"part", name(row.part)},
                       {"shape", row.shape},
                       {"copies", row.copies()},
                       {"first_layer", row.first_layer},
                       {"layers", row.layers},
                       {"uses", row.uses},
                       {"parameters", row.parameters()},
                       {"active_parameters", row.active_parameters()},
                       {"split", row.split == ModuleSplit::kReplicated ? nlohmann::ordered_json() : name(row.split)},
                       {"expert", row.is_expert()},
                       {"mtp", row.mtp},
                       {"tied", row.tied},
                       {"forward_flops_per_token", row.forward_flops_per_token()}});
  }
  return modules;
}

nlohmann::ordered_json info_json(const RunPlan& plan) {
  const ModelConfig& m = plan.config.model;
  const ModelCounts counts = counts_of(plan);
  const StepRecord record = training_functions().record_step(plan);
  const RankRecord& memory = record.fullest();
  return {{"preset", plan.config.preset},
          {"total_parameters", counts.total},
          {"active_parameters", counts.active},
          {"active_parameters_without_embedding", counts.active - counts.embedding},
          {"mtp_parameters", counts.mtp},
          {"mtp_active_parameters", counts.mtp_active},
          {"forward_flops_per_token", counts.forward_flops_per_token},
          {"mtp_forward_flops_per_token", counts.mtp_forward_flops_per_token},
          {"training_flops_per_token", m.training_flops_per_token(m.seq_length)},
          {"kv_cache_bytes_per_token", kv_cache_bytes_per_token(plan)},
          {"modules", modules_json(m)},
          {"rank",
           {{"layout", layout_text(plan, true)},
            {"microbatches", plan.num_microbatches},
            {"micro_batch_size", plan.micro_batch_size},
            {"pp_rank", memory.pp_rank},
            {"memory_bytes", category_bytes_json(memory.at_peak)},
            {"memory_tolerance", kPeakTolerance}}}};
}

struct Given {
  std::unique_ptr<ConfigOptions> options;
  std::string model;  // a preset's name, or a folder
  std::string out, theme = "light";
  bool json = false, markdown = false, stats = false, roofline = false, histograms = false, force = false;
};

// Opens a folder; flags override its settings.
SavedModel open_folder(Given& given) {
  SavedModel saved = open_saved_model(given.model);
  for (const auto& [key, text] : settings_of(saved.config)) given.options->set(key, text, quote(given.model));
  return saved;
}

// What a command shows about a model, besides the plan.
struct Shown {
  RunPlan plan;
  SavedModel saved;                  // set if the model is from a folder
  std::vector<WeightGroup> weights;  // for histograms
};

Shown shown_of(Given& given) {
  if (given.model.find('/') != std::string::npos)  // not a preset's name
    require_folder(given.model, "model info", "a checkpoint, or a Hugging Face folder");
  const bool saves = is_folder(given.model);
  RANKLAB_CHECK(saves || !given.stats, ErrorKind::kInvalidArgument, .where = "model info",
                .what = "--stats needs weights, and a preset has none", .got = quote(given.model),
                .want = "a checkpoint, or a Hugging Face folder",
                .fix = "pass a folder, or --histograms, which draws the initial weights of a preset");
  SavedModel saved;
  if (saves) {
    saved = open_folder(given);
  } else if (!given.model.empty()) {
    given.options->set("model.preset", given.model, "the command line");
  }
  RunPlan plan = given.options->resolve(given.options->config());
  if (saves) plan.config.preset = given.model;  // shown as the title of the table
  std::vector<WeightGroup> weights;
  if (given.histograms)
    weights = saves ? saved_weight_groups(*saved.tensors, plan.config.model) : initial_weight_groups(plan.config);
  return {std::move(plan), std::move(saved), std::move(weights)};
}

std::string output_of(const Given& given, const Shown& shown) {
  if (given.json) {
    nlohmann::ordered_json data = info_json(shown.plan);
    if (given.roofline) data["roofline"] = roofline_json(shown.plan);
    if (given.stats) data["tensors"] = stats_json(*shown.saved.tensors);
    if (given.histograms) data["weights"] = histograms_json(shown.weights);
    return json_result(data, shown.saved.notes);
  }
  const Style style = style_for(stdout);
  std::string text =
      given.markdown ? info_markdown(shown.plan) : info_text(shown.plan, given.options->layout_note(), style);
  if (given.roofline && !given.markdown) text += "\n" + roofline_text(shown.plan, style);
  if (given.stats) text += "\n" + stats_text(*shown.saved.tensors, style);
  if (given.histograms) text += "\n" + histograms_text(shown.weights, style);
  return text;
}

viz::Drawing drawing_of(const Given& given, const Shown& shown) {
  const RunPlan& plan = shown.plan;
  const ModelCounts counts = counts_of(plan);
  const StepRecord record = training_functions().record_step(plan);
  const RankRecord& memory = record.fullest();
  ModelPictureParts parts{.title = headline(plan, counts),
                          .rank = whose_text(plan, memory),
                          .roofline = given.roofline,
                          .weights = given.histograms ? &shown.weights : nullptr};
  std::istringstream lines(token_text(plan, counts));
  for (std::string line; std::getline(lines, line);) parts.facts.push_back(line.substr(2));
  return viz::model_drawing(model_picture(plan, memory.at_peak, parts));
}

int run_info(Given& given) {
  RANKLAB_CHECK(given.out.empty() || (!given.markdown && (given.json || !given.stats)), ErrorKind::kInvalidArgument,
                .where = "--out", .what = "a picture has no table of tensors and is not Markdown",
                .got = given.markdown ? "--out with --markdown" : "--out with --stats",
                .want = "--roofline or --histograms with it, or --json beside --stats", .fix = "leave one of them out");
  std::optional<PictureFile> picture;
  if (!given.out.empty())
    picture.emplace(given.out, "model info", ground_of(given.theme), given.force, std::vector{given.model});
  const Shown shown = shown_of(given);
  if (picture) {
    picture->write(drawing_of(given, shown));
    std::fprintf(stderr, "wrote %s\n", given.out.c_str());
    if (!given.json) return 0;
  }
  std::fputs(output_of(given, shown).c_str(), stdout);
  return 0;
}

}  // namespace

CommandAction setup_model(CommandLine& app) {
  auto given = std::make_shared<Given>();
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab model info llama_8b --tp 8\n  ranklab model info gpt2_124m --num-layers 24 --markdown\n"
      "  ranklab model info deepseek_v3 --bf16 --hardware h200 --roofline\n"
      "  ranklab model info gpt2_124m --roofline --histograms --out gpt2.png");
  CommandLine* info = app.add_subcommand("info", "parameters by module, FLOPs per token, bytes per rank");
  given->options = std::make_unique<ConfigOptions>(*info);
  info->add_option(
      "PRESET", given->model,
      "a name of `ranklab list presets`, a checkpoint, or a Hugging Face folder; settings change its numbers");
  info->add_flag("--json", given->json, "print one JSON object");
  info->add_flag("--markdown", given->markdown, "print the table in Markdown");
  info->add_flag("--roofline", given->roofline,
                 "what bounds training, prefill and decoding on --hardware (arithmetic or memory), and how many ranks "
                 "the experts need");
  info->add_flag("--stats", given->stats, "saved model: mean, deviation, largest value, zeros and NaN of every tensor");
  info->add_flag("--histograms", given->histograms,
                 "distribution of the weights of a saved model, or of a preset's initial weights, by parameter");
  info->add_option("--out", given->out, "draw all of this as a .png or .svg instead")->type_name("FILE");
  info->add_option("--theme", given->theme, "theme of the picture")->one_of({"light", "dark"});
  info->add_flag("--force", given->force, "let --out overwrite an existing file");
  return [&app, info, given] {
    if (info->parsed()) return run_info(*given);
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
