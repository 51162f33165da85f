// The options of `ranklab generate`.
#include <memory>
#include <string>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/generate/replica_world.h"
#include "cli/generate/saved_run_defaults.h"
#include "cli/training_module.h"
#include "core/base/error.h"

namespace ranklab {

CommandAction setup_generate(CommandLine& app) {
  app.footer(
      "Examples:\n  ranklab generate --load runs/ckpt --prompt 'In the beginning '\n"
      "  ranklab generate --train-iters 200 --prompt 'In the beginning '\n"
      "  ranklab generate --preset deepseek_v3_tiny --tp 4 --top-k 1\n"
      "Any layout works: the first replica generates, and ranks of other replicas only run their experts. A pipeline\n"
      "has no key/value cache and recomputes the whole window for each token.");
  auto options = std::make_shared<ConfigOptions>(app, saved_run_defaults(), ModelUse::kTrainsIfAsked);
  auto request = std::make_shared<GenerateRequest>();
  const CommandOption* prompt = app.add_option("--prompt", request->prompt, "text to continue")->capture_default_str();
  app.add_option("--prompt-file", request->prompt_file, "file with one prompt per line, each continued by itself")
      ->type_name("FILE");
  app.add_option("--tokenizer", request->tokenizer,
                 "tokenizer.json or its folder (default: the checkpoint's or the data's, else bytes)")
      ->type_name("PATH");
  app.add_option("--tokens", request->tokens, "tokens to generate")
      ->capture_default_str()
      ->range(int64_t{1}, int64_t{1} << 24);
  app.add_option("--temperature", request->temperature, "sampling temperature (0: always the likeliest token)")
      ->capture_default_str()
      ->range(0.0, 1000.0);
  app.add_option("--top-k", request->top_k, "sample only from the N likeliest tokens (0: all, 1: the likeliest)")
      ->capture_default_str()
      ->range(int64_t{0}, int64_t{1} << 24);
  app.add_option("--top-p", request->top_p,
                 "sample only from the likeliest tokens with this total probability (1: all)")
      ->capture_default_str()
      ->range(0.0, 1.0);
  app.add_flag("--ignore-eos", request->ignore_eos, "continue after an end-of-text token");
  app.add_option("--print-logits", request->logits_path,
                 "write the prompt's tokens and logits to this safetensors file");
  app.add_flag("--force", request->force, "let --print-logits overwrite a file that this command did not write");
  app.add_flag("--json", request->json, "print one JSON object");
  return [options, request, prompt] {
    RANKLAB_CHECK(request->prompt_file.empty() || (prompt->count() == 0 && request->logits_path.empty()),
                  ErrorKind::kInvalidArgument, .where = "--prompt-file",
                  .what = "the prompts are those of the file, whose logits are not printed",
                  .got = prompt->count() > 0 ? "--prompt with it" : "--print-logits with it", .want = "one of the two",
                  .fix = "leave one of them out");
    RANKLAB_CHECK(!request->prompt.empty(), ErrorKind::kInvalidArgument, .where = "generate",
                  .what = "the prompt is empty", .got = "--prompt ''", .want = "at least one byte",
                  .fix = "pass --prompt TEXT, or leave it out for the default");
    const std::string saved = saved_model_of(*options);
    if (saved.empty()) check_replica(*options);
    return training_functions().generate(*options, *request, saved);
  };
}

}  // namespace ranklab
