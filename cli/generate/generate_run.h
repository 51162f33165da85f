// `ranklab generate`: text from a model whose weights come from a checkpoint or a seed, unchanged or after some steps
// of training. Thread rule: main thread.
#pragma once
#include <cstdint>
#include <string>

#include "cli/config/config_options.h"

namespace ranklab {

struct GenerateRequest {
  std::string prompt = "And the ";
  std::string prompt_file;  // a file with one prompt per line, used instead of `prompt`; empty: none
  std::string logits_path;  // empty: none
  std::string tokenizer;    // --tokenizer; "": the checkpoint's, or the data's
  int64_t tokens = 100;
  double temperature = 0.8;
  int64_t top_k = 0;
  double top_p = 1.0;
  bool ignore_eos = false;
  bool force = false;
  bool json = false;
};

// `load`: the saved model, or "". Prints the texts. RETURNS: the exit code.
int run_generate(ConfigOptions& options, const GenerateRequest& request, const std::string& load);

}  // namespace ranklab
