// Splits a text into words by a tokenizer's patterns. Cost: one pass over the text per step. Thread rule: one thread at
// a time.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/pattern.h"
#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

// GPT-2's own pattern (encoder.py), as used by Hugging Face's ByteLevel.
extern const std::string_view kGpt2Pattern;

class PreTokenizer {
 public:
  // Throws kInvalidArgument when a pattern is invalid; `where` names the file.
  PreTokenizer(const PreTokenizerSpec& spec, const std::string& where);

  using TakeWord = std::function<void(std::string_view)>;
  // Calls `take` for each word in order; words are not empty. REQUIRES: text is UTF-8.
  void split(std::string_view text, const TakeWord& take) const;

 private:
  struct Step {
    SplitStep spec;
    std::unique_ptr<Pattern> pattern;  // null: spec.pattern is matched literally
  };
  void run(size_t step, std::string_view text, const TakeWord& take) const;
  void finish(std::string_view text, const TakeWord& take) const;

  std::vector<Step> steps_;
  std::unique_ptr<Pattern> gpt2_;
  bool add_prefix_space_;
};

}  // namespace ranklab
