// The families of byte-level BPE tokenizers that ranklab can train, and recognizes by their class: their normalizer,
// patterns and switches. Thread rule: pure.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

struct TokenizerStyle {
  const char* name;  // value of --style
  const char* about;
  const char* hf_class;  // class of files with vocab.json and merges.txt; "" if it has no such files
  // Sets everything except vocabulary, merges and added tokens.
  void (*set)(TokenizerSpec& spec);
};

std::span<const TokenizerStyle> tokenizer_styles();
// Throws kInvalidArgument for an unknown name.
const TokenizerStyle& tokenizer_style(const std::string& name);
// Null if no style has this class.
const TokenizerStyle* style_of_class(std::string_view hf_class);

}  // namespace ranklab
