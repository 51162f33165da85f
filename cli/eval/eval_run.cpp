#include "cli/eval/eval_run.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/common/interrupt.h"
#include "cli/common/terminal.h"
#include "cli/eval/eval_input.h"
#include "cli/eval/eval_output.h"
#include "cli/generate/saved_run.h"
#include "core/runtime/text/score_tokens.h"

namespace ranklab {
namespace {

void show_progress(size_t batches, size_t of) {
  if (!on_terminal(2)) return;
  std::fprintf(stderr, "\r  %zu of %zu batches ", batches, of);
  if (batches == of) std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace

int run_eval(ConfigOptions& options, const EvalRequest& request, const std::string& load) {
  const std::unique_ptr<SavedModel> saved = take_saved_model(options, load, ModelUse::kOnlyRuns);
  watch_interrupts();
  EvalInput input;
  TrainConfig config = options.config();
  config.load = load;
  const auto [plan, world] = ready_run(options, std::move(config), [&](const RunPlan& ready) {
    input = read_eval_input(request, ready.config, saved.get(), load);
  });
  std::vector<double> scores;
  try {
    run_saved_model(plan, world, saved.get(), [&](StepContext& context) {
      const bool first = context.ctx.global_rank() == 0;
      std::vector<double> all = score_tokens(context, input.requests, [first](size_t batches, size_t of) {
        if (first) show_progress(batches, of);
        stop_if_interrupted();
      });
      if (first) scores = std::move(all);
    });
  } catch (const Error& error) {
    if (is_caused_by_interrupt(error)) return interrupt_exit_code();
    throw;
  }
  if (interrupt_requested()) return interrupt_exit_code();
  if (!world->has_rank_zero()) return 0;
  request.json ? print_eval_json(plan, request, input, scores) : print_eval_text(plan, request, input, scores);
  return 0;
}

}  // namespace ranklab
