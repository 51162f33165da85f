// `ranklab eval`: the perplexity of a text and multiple-choice tasks, for a saved model in any layout. Thread rule:
// main thread.
#pragma once
#include <cstdint>
#include <string>

#include "cli/config/config_options.h"

namespace ranklab {

struct EvalRequest {
  std::string text, tasks, delimiter = " ";
  std::string tokenizer;  // --tokenizer; "": the model's own, or bytes
  int64_t stride = 0;     // 0: the context length
  bool json = false;
};

// `load`: the saved model, or "". Prints the result. RETURNS: the exit code.
int run_eval(ConfigOptions& options, const EvalRequest& request, const std::string& load);

}  // namespace ranklab
