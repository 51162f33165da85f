// ranklab ckpt import-hf: a Hugging Face folder as a checkpoint that `ranklab train --load` can start from.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ckpt/ckpt_options.h"
#include "cli/ckpt/ckpt_subcommands.h"
#include "cli/ckpt/write_checkpoint.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/model/saved_model.h"
#include "cli/model/saved_tokenizer.h"
#include "core/base/files/input_file.h"
#include "core/base/files/path_type.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/import.h"

namespace ranklab {
namespace {

struct ImportOptions {
  std::string folder, out;
  bool json = false;
};

// What transformers' tokenizers have beside tokenizer.json, and ranklab has no use for.
void tell_chat_template(const std::string& folder, std::vector<std::string>& notes) {
  for (const char* name : {"chat_template.jinja", "tokenizer_config.json"}) {
    const std::string path = folder + "/" + name;
    constexpr uint64_t kMostBytes = uint64_t{64} << 20;
    const InputWords words{.where = "Hugging Face", .fix = "check the path and its permissions", .follow_links = false};
    const bool is_template = std::string_view(name).ends_with(".jinja");
    if (!is_there(path) ||
        (!is_template && read_whole_file(path, kMostBytes, words).find("\"chat_template\"") == std::string::npos))
      continue;
    notes.push_back(std::string("its chat template is not kept: copy ") + name + " into what export-hf writes");
    return;
  }
}

int run_import(const ImportOptions& options) {
  const HfModel model(options.folder);
  std::vector<std::string> notes = model.notes();
  const std::optional<Tokenizer> tokenizer = saved_tokenizer(options.folder, notes);
  tell_chat_template(options.folder, notes);
  const WrittenCheckpoint written =
      write_imported(model, model.config(), options.out, tokenizer ? tokenizer->json() : "");
  if (options.json) {
    const nlohmann::ordered_json data = {{"checkpoint", written.folder},
                                         {"settings", written.settings},
                                         {"architecture", model.architecture()},
                                         {"tensors", written.tensors},
                                         {"bytes", written.bytes}};
    std::fputs(json_result(data, notes).c_str(), stdout);
    return 0;
  }
  for (const std::string& note : notes) std::printf("note: %s\n", note.c_str());
  std::printf("%s: %s, %zu tensors, %s in %s\n", written.folder.c_str(), model.architecture().c_str(), written.tensors,
              human_bytes(static_cast<double>(written.bytes)).c_str(), short_name(model.type()).c_str());
  std::printf("  go on training: ranklab train --config %s --load %s --finetune\n",
              shell_path(written.settings).c_str(), shell_path(options.out).c_str());
  return 0;
}

}  // namespace

CkptSubcommand add_ckpt_import(CommandLine& app) {
  CommandLine* command = app.add_subcommand("import-hf", "read a Hugging Face folder (safetensors) into a checkpoint");
  auto options = std::make_shared<ImportOptions>();
  command->add_option("FOLDER", options->folder, "config.json and *.safetensors, as save_pretrained() writes")
      ->required();
  command->add_option("OUT", options->out, "the folder of checkpoints to make: new or empty")->required();
  command->add_flag("--json", options->json, "print one JSON object");
  return {command, [options] { return run_import(*options); }};
}

}  // namespace ranklab
