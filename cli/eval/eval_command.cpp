// The options of `ranklab eval`.
#include <memory>
#include <string>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/generate/replica_world.h"
#include "cli/generate/saved_run_defaults.h"
#include "cli/training_module.h"
#include "core/base/error.h"

namespace ranklab {

CommandAction setup_eval(CommandLine& app) {
  app.footer(
      "Examples:\n  ranklab eval --load runs/ckpt --text book.txt\n"
      "  ranklab eval --load runs/ckpt --tasks arc.jsonl --dp 4 --tp 2\n"
      "A line of --tasks: {\"query\": \"Two and two are\", \"choices\": [\"four\", \"five\"], \"gold\": 0}. Replicas "
      "(--dp) split\n"
      "the windows and choices; every layout gives the same numbers. How texts and tasks are scored: docs/data.md.");
  auto options = std::make_shared<ConfigOptions>(app, saved_run_defaults(), ModelUse::kOnlyRuns);
  auto request = std::make_shared<EvalRequest>();
  app.add_option("--text", request->text,
                 "measure perplexity and bits per byte of this text file, or of a folder of token shards")
      ->type_name("FILE");
  app.add_option("--tokenizer", request->tokenizer,
                 "tokenizer.json or its folder (default: the checkpoint's or the Hugging Face folder's, else bytes)")
      ->type_name("PATH");
  app.add_option("--stride", request->stride, "step between windows of --text, in tokens (default: the context length)")
      ->range(int64_t{1}, int64_t{1} << 24);
  app.add_option("--tasks", request->tasks, "multiple-choice tasks, one JSON object per line; reports acc and acc_norm")
      ->type_name("FILE");
  app.add_option("--delimiter", request->delimiter, "text between a query and its choices (default: a space)")
      ->type_name("TEXT");
  app.add_flag("--json", request->json, "print one JSON object");
  return [options, request] {
    RANKLAB_CHECK(!request->text.empty() || !request->tasks.empty(), ErrorKind::kInvalidArgument, .where = "eval",
                  .what = "nothing to evaluate on", .want = "--text FILE, --tasks FILE.jsonl, or both",
                  .fix = "add --text FILE");
    const std::string saved = saved_model_of(*options);
    if (saved.empty()) check_replica(*options);
    return training_functions().eval(*options, *request, saved);
  };
}

}  // namespace ranklab
