// The families of byte-level BPE tokenizers that ranklab trains and knows by their class: their normalizer, patterns
// and switches. Thread rule: pure.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

struct TokenizerStyle {
  const char* name;  // of --style
  const char* about;
  const char* hf_class;  // of the files vocab.json and merges.txt, "" if it has no such files
  // Sets all but vocabulary, merges and added tokens.
  void (*set)(TokenizerSpec& spec);
};

std::span<const TokenizerStyle> tokenizer_styles();
// Throws kInvalidArgument for an unknown name.
const TokenizerStyle& tokenizer_style(const std::string& name);
// Null when it is none's.
const TokenizerStyle* style_of_class(std::string_view hf_class);

}  // namespace ranklab
