// Prints the result of `eval` as text or JSON. `scores`: one per request of the input. Thread rule: one thread.
#pragma once
#include <span>

#include "cli/eval/eval_input.h"
#include "core/config/train_config.h"

namespace ranklab {

void print_eval_text(const RunPlan& plan, const EvalRequest& request, const EvalInput& input,
                     std::span<const double> scores);
void print_eval_json(const RunPlan& plan, const EvalRequest& request, const EvalInput& input,
                     std::span<const double> scores);

}  // namespace ranklab
