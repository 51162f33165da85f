// What `eval` scores, as requests of tokens: the windows of a text, then the choices of tasks. Thread rule: one thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/eval/eval_run.h"
#include "cli/eval/eval_tasks.h"
#include "cli/eval/eval_tokenizer.h"
#include "core/runtime/text/score_tokens.h"

namespace ranklab {

// Move it, do not copy it: its requests refer to its own tokens.
struct EvalInput {
  std::string tokenizer = {};  // its hash; "": a token is a byte, or only tokens of a folder are scored
  ScoredTokens text = {};
  int64_t text_tokens = 0;  // the number of scored tokens
  // The number of bytes that the scored tokens stand for; nothing for a folder of shards, or if tokens after the ends
  // of documents are not scored.
  std::optional<int64_t> text_bytes = {};
  std::vector<ChoiceTask> tasks = {};
  std::vector<ScoredTokens> choices = {};  // of all tasks
  std::vector<ScoreRequest> requests = {};
  size_t windows = 0;
};

// `saved`: the model that was opened as `load`, or null. Throws kIo; kBadFile for malformed files; kInvalidArgument for
// what the model cannot score.
EvalInput read_eval_input(const EvalRequest& request, const TrainConfig& config, const SavedModel* saved,
                          const std::string& load);

}  // namespace ranklab
