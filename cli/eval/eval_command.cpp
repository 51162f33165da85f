// ranklab eval: perplexity of a text, and multiple-choice tasks, of a saved model in any layout.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/interrupt.h"
#include "cli/common/terminal.h"
#include "cli/config/config_options.h"
#include "cli/eval/eval_input.h"
#include "cli/eval/eval_output.h"
#include "cli/generate/saved_run.h"
#include "core/base/error.h"
#include "core/runtime/text/score_tokens.h"

namespace ranklab {
namespace {

void show_progress(size_t batches, size_t of) {
  std::fprintf(stderr, "\r  %zu of %zu batches ", batches, of);
  if (batches == of) std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

int run_eval(ConfigOptions& options, const EvalRequest& request, const std::string& load) {
  RANKLAB_CHECK(!request.text.empty() || !request.tasks.empty(), ErrorKind::kInvalidArgument, .where = "eval",
                .what = "nothing to evaluate on", .want = "--text FILE, --tasks FILE.jsonl, or both",
                .fix = "add --text FILE");
  const std::unique_ptr<SavedModel> saved = take_saved_model(options, load);
  watch_interrupts();
  EvalInput input;
  const auto [plan, world] = ready_run(options, options.config(), [&](const RunPlan& ready) {
    input = read_eval_input(request, ready.config.model, saved.get(), load);
  });
  std::vector<double> scores;
  std::function<void(size_t, size_t)> progress;
  if (on_terminal(2)) progress = show_progress;
  run_saved_model(plan, world, saved.get(), [&](StepContext& context) {
    std::vector<double> all = score_tokens(context, input.requests, progress);
    if (context.ctx.global_rank() == 0) scores = std::move(all);
  });
  if (interrupt_requested()) return interrupt_exit_code();
  if (!world->has_rank_zero()) return 0;
  request.json ? print_eval_json(plan, request, input, scores) : print_eval_text(plan, request, input, scores);
  return 0;
}

}  // namespace

CommandAction setup_eval(CommandLine& app) {
  app.footer(
      "Examples:\n  ranklab eval --load runs/ckpt --text book.txt\n"
      "  ranklab eval --load runs/ckpt --tasks arc.jsonl --dp 4 --tp 2\n"
      "A line of --tasks: {\"query\": \"Two and two are\", \"choices\": [\"four\", \"five\"], \"gold\": 0}. Replicas "
      "(--dp) share\n"
      "the windows and choices out; every layout gives the same numbers. What is scored: docs/data.md, Tokenizers.");
  auto options = std::make_shared<ConfigOptions>(app, saved_run_defaults());
  auto request = std::make_shared<EvalRequest>();
  app.add_option("--text", request->text,
                 "perplexity of this text, and its bits a byte; or of the tokens in a folder of shards")
      ->type_name("FILE");
  app.add_option("--tokenizer", request->tokenizer,
                 "of text and tasks: tokenizer.json or its folder (default: the checkpoint's or the Hugging Face "
                 "folder's, else bytes)")
      ->type_name("PATH");
  app.add_option("--stride", request->stride,
                 "tokens from one window of --text to the next (default: the context's length)")
      ->range(int64_t{1}, int64_t{1} << 24);
  app.add_option("--tasks", request->tasks, "multiple-choice tasks, a JSON object a line: acc and acc_norm")
      ->type_name("FILE");
  app.add_option("--delimiter", request->delimiter, "between a query and its choices (default: a space)")
      ->type_name("TEXT");
  app.add_flag("--json", request->json, "print one JSON object");
  CommandOption* load = app.option("--load");
  return [options, request, load] {
    return run_eval(*options, *request, load->count() > 0 ? load->results().back() : "");
  };
}

}  // namespace ranklab
