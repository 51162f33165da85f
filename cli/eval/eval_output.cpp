#include "cli/eval/eval_output.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/common/json_output.h"
#include "cli/common/pipeline_text.h"
#include "cli/generate/saved_run.h"
#include "core/base/counted.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

struct TextResult {
  int64_t tokens = 0;
  double nats = 0;  // sum over all scored tokens
  double mean() const { return nats / static_cast<double>(tokens); }
  double perplexity() const { return std::exp(mean()); }
  double bits_per(int64_t bytes) const { return nats / std::log(2.0) / static_cast<double>(bytes); }
};

struct TaskResult {
  std::vector<TaskAnswer> answers = {};
  Accuracy acc, acc_norm;
};

TextResult text_result(const EvalInput& input, std::span<const double> scores) {
  TextResult out{.tokens = input.text_tokens};
  for (size_t i = 0; i < input.windows; ++i) out.nats -= scores[i];
  return out;
}

TaskResult task_result(const EvalInput& input, std::span<const double> scores) {
  TaskResult out;
  size_t correct = 0, correct_by_byte = 0, next = input.windows;
  for (const ChoiceTask& task : input.tasks) {
    out.answers.push_back(answer_of(task, scores.subspan(next, task.choices.size())));
    next += task.choices.size();
    correct += out.answers.back().chosen == task.gold ? 1 : 0;
    correct_by_byte += out.answers.back().chosen_by_byte == task.gold ? 1 : 0;
  }
  out.acc = accuracy_of(correct, input.tasks.size());
  out.acc_norm = accuracy_of(correct_by_byte, input.tasks.size());
  return out;
}

std::string evaluated_text(const TrainConfig& c) {
  return c.load.empty() ? "untrained weights of seed " + std::to_string(c.seed) : "weights of " + c.load;
}

ordered_json tasks_json(const EvalRequest& request, const EvalInput& input, const TaskResult& tasks) {
  ordered_json answers = ordered_json::array();
  const ScoredTokens* choice = input.choices.data();
  for (size_t i = 0; i < input.tasks.size(); ++i) {
    ordered_json counts = ordered_json::array();
    for (size_t c = 0; c < input.tasks[i].choices.size(); ++c, ++choice)
      counts.push_back(static_cast<int64_t>(choice->tokens.size()) - choice->first);
    answers.push_back({{"gold", input.tasks[i].gold},
                       {"chosen", tasks.answers[i].chosen},
                       {"chosen_by_byte", tasks.answers[i].chosen_by_byte},
                       {"log_likelihood", tasks.answers[i].log_likelihood},
                       {"tokens", counts}});
  }
  return {{"file", request.tasks},
          {"tasks", input.tasks.size()},
          {"acc", tasks.acc.share},
          {"acc_stderr", tasks.acc.error},
          {"acc_norm", tasks.acc_norm.share},
          {"acc_norm_stderr", tasks.acc_norm.error},
          {"answers", answers}};
}

}  // namespace

void print_eval_text(const RunPlan& plan, const EvalRequest& request, const EvalInput& input,
                     std::span<const double> scores) {
  std::printf("%s, %s, %s\n", run_model_text(plan.config).c_str(), evaluated_text(plan.config).c_str(),
              layout_text(plan, true).c_str());
  const int64_t context = plan.config.model.seq_length;
  if (!request.text.empty()) {
    const TextResult text = text_result(input, scores);
    std::printf("\n%s: %s scored in %s of %ld, stride %ld\n", without_controls(request.text).c_str(),
                counted(text.tokens, "token").c_str(), counted(static_cast<int64_t>(input.windows), "window").c_str(),
                static_cast<long>(context), static_cast<long>(request.stride > 0 ? request.stride : context));
    std::printf("  nats per token  %12.6f\n  perplexity      %12.6f\n", text.mean(), text.perplexity());
    if (input.text_bytes)
      std::printf("  bits per byte   %12.6f   (of %ld bytes)\n", text.bits_per(*input.text_bytes),
                  static_cast<long>(*input.text_bytes));
  }
  if (request.tasks.empty()) return;
  const TaskResult tasks = task_result(input, scores);
  std::printf("\n%s: %s\n", without_controls(request.tasks).c_str(),
              counted(static_cast<int64_t>(input.tasks.size()), "task").c_str());
  std::printf("  acc       %.4f +- %.4f\n  acc_norm  %.4f +- %.4f   (log-likelihood by byte of the choice)\n",
              tasks.acc.share, tasks.acc.error, tasks.acc_norm.share, tasks.acc_norm.error);
}

void print_eval_json(const RunPlan& plan, const EvalRequest& request, const EvalInput& input,
                     std::span<const double> scores) {
  const int64_t context = plan.config.model.seq_length;
  ordered_json data = {
      {"preset", plan.config.load.empty() ? nlohmann::ordered_json(plan.config.preset) : nlohmann::ordered_json()},
      {"layout", layout_text(plan, true)},
      {"loaded", plan.config.load},
      {"context", context},
      {"tokenizer", input.tokenizer.empty() ? ordered_json() : ordered_json(input.tokenizer)}};
  if (!request.text.empty()) {
    const TextResult text = text_result(input, scores);
    data["text"] = {
        {"file", request.text},
        {"tokens", text.tokens},
        {"windows", input.windows},
        {"stride", request.stride > 0 ? request.stride : context},
        {"nats_per_token", text.mean()},
        {"perplexity", text.perplexity()},
        {"bytes", input.text_bytes ? ordered_json(*input.text_bytes) : ordered_json()},
        {"bits_per_byte", input.text_bytes ? ordered_json(text.bits_per(*input.text_bytes)) : ordered_json()}};
  }
  if (!request.tasks.empty()) data["tasks"] = tasks_json(request, input, task_result(input, scores));
  std::fputs(json_result(data).c_str(), stdout);
}

}  // namespace ranklab
