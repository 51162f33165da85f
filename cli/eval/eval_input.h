// What `eval` scores: the windows of a text, then the choices of tasks, as requests of tokens. Thread rule: one thread.
#pragma once
#include <string>
#include <vector>

#include "cli/eval/eval_tasks.h"
#include "core/runtime/score_tokens.h"

namespace ranklab {

struct EvalRequest {
  std::string text, tasks, delimiter = " ";
  int64_t stride = 0;  // 0: the context's length
  bool json = false;
};

// Its requests refer to its tokens: it is moved, not copied.
struct EvalInput {
  std::vector<int64_t> text_tokens = {};
  bool text_is_bytes = true;  // a token is one; else they are of a folder of shards
  std::vector<ChoiceTask> tasks = {};
  std::vector<std::vector<int64_t>> task_tokens = {};
  std::vector<ScoreRequest> requests = {};
  size_t windows = 0;
};

// Throws kBadFile for files that are none, kInvalidArgument for what the model cannot score.
EvalInput read_eval_input(const EvalRequest& request, const ModelConfig& model);

}  // namespace ranklab
