// `ranklab ckpt export-hf`: writes a checkpoint as a folder that Hugging Face's transformers can load.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ckpt/ckpt_options.h"
#include "cli/ckpt/ckpt_subcommands.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/model/saved_model.h"
#include "cli/model/saved_tokenizer.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/export.h"

namespace ranklab {
namespace {

struct ExportOptions {
  std::string checkpoint, folder, dtype, max_shard_size = "5GB", tokenizer = "auto";
  bool json = false;
};

// Of many weight files, which are first in the list, shows only the first and the last.
std::string names_text(std::vector<std::string> files) {
  constexpr int64_t kShown = 4;
  const auto weights =
      std::ranges::count_if(files, [](const std::string& name) { return name.ends_with(".safetensors"); });
  if (weights > kShown) {
    files[0] += " to " + files[static_cast<size_t>(weights) - 1];
    files.erase(files.begin() + 1, files.begin() + weights);
  }
  return join(files, ", ");
}

// If a run continued with another tokenizer, the settings of the tokenizer that belonged to its model do not apply.
void drop_others_config(Tokenizer& tokenizer, ModelConfig& config, std::vector<std::string>& notes) {
  const auto kept = nlohmann::json::parse(config.hf_tokenizer_config, nullptr, false);
  if (!kept.is_object()) return;
  for (const char* key : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
    const auto found = kept.find(key);
    if (found == kept.end()) continue;
    const auto& token = found->is_object() && found->contains("content") ? (*found)["content"] : *found;
    if (!token.is_string() || tokenizer.encode(token.get<std::string>(), false).size() == 1) continue;
    notes.push_back(
        "tokenizer_config.json and its chat template are not those that were imported: the tokenizer has no " +
        quote(token.get<std::string>()));
    config.hf_tokenizer_config.clear();
    return;
  }
}

int run_export(const ExportOptions& options) {
  HfExportOptions how{.type = parse_tensor_type(options.dtype),
                      .max_shard_bytes = parse_bytes("--max-shard-size", options.max_shard_size),
                      .tokenizer = options.tokenizer == "bytes"  ? HfTokenizer::kBytes
                                   : options.tokenizer == "none" ? HfTokenizer::kNone
                                                                 : HfTokenizer::kAuto};
  SavedModel saved = open_saved_model(options.checkpoint);
  if (std::optional<Tokenizer> tokenizer = saved_tokenizer(options.checkpoint, saved.notes)) {
    drop_others_config(*tokenizer, saved.config, saved.notes);
    how.own_tokenizer = tokenizer->json();
    how.own_end_token = end_token_text(*tokenizer);
    const bool is_written = how.tokenizer == HfTokenizer::kAuto && saved.config.hf_eos_tokens.empty();
    if (is_written && tokenizer->end_token()) saved.config.hf_eos_tokens = {*tokenizer->end_token()};
  }
  const HfExported result = export_hf(*saved.tensors, saved.config, options.folder, how);
  if (options.json) {
    const nlohmann::ordered_json data = {{"folder", options.folder},
                                         {"architecture", result.architecture},
                                         {"files", result.files},
                                         {"tensors", result.tensors},
                                         {"bytes", result.bytes}};
    std::fputs(json_result(data, saved.notes).c_str(), stdout);
    return 0;
  }
  for (const std::string& note : saved.notes) std::printf("note: %s\n", note.c_str());
  std::printf("%s: %s, %zu tensors, %s\n", options.folder.c_str(), result.architecture.c_str(), result.tensors,
              human_bytes(static_cast<double>(result.bytes)).c_str());
  std::printf("  %s\n", names_text(result.files).c_str());
  std::printf("  from_pretrained(\"%s\") of transformers loads it\n", options.folder.c_str());
  return 0;
}

}  // namespace

CkptSubcommand add_ckpt_export(CommandLine& app) {
  CommandLine* command = app.add_subcommand("export-hf", "write a checkpoint as a Hugging Face folder (safetensors)");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("CHECKPOINT", options->checkpoint, "a checkpoint, or a folder of them: its newest")->required();
  command->add_option("OUT", options->folder, "the folder to write: new or empty")->required();
  command->add_option("--dtype", options->dtype, "type of the weights: fp32, bf16, fp16 or fp64 (default: as stored)");
  command->add_option("--max-shard-size", options->max_shard_size, "maximum size of a file")->capture_default_str();
  command
      ->add_option("--tokenizer", options->tokenizer,
                   "tokenizer files to write (auto: the model's own, or bytes if its vocabulary is the 256 bytes): "
                   "auto | bytes | none")
      ->one_of({"auto", "bytes", "none"})
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object");
  return {command, [options] { return run_export(*options); }};
}

}  // namespace ranklab
