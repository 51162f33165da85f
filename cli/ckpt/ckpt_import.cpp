// `ranklab ckpt import-hf`: converts a Hugging Face folder to a checkpoint that `ranklab train --load` can start from.
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
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/import.h"

namespace ranklab {
namespace {

struct ImportOptions {
  std::string folder, out;
  bool json = false;
};

int run_import(const ImportOptions& options) {
  const HfModel model(options.folder);
  std::vector<std::string> notes = model.notes();
  const std::optional<Tokenizer> tokenizer = saved_tokenizer(options.folder, notes);
  ModelConfig config = model.config();
  if (!tokenizer && !config.hf_tokenizer_config.empty()) {
    notes.emplace_back("its tokenizer_config.json and chat template are left out: no tokenizer of the folder is kept");
    config.hf_tokenizer_config.clear();
  }
  const WrittenCheckpoint written = write_imported(model, config, options.out, tokenizer ? tokenizer->json() : "");
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
  std::printf("  continue training: ranklab train --config %s --load %s --finetune\n",
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
