// Converts text to the tokens of a model: bytes, or a tokenizer's tokens after those that it puts before every text.
// Pairs of a context and its continuation are split as the LM Evaluation Harness splits them. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/model/saved_model.h"
#include "core/data/tokenizer/tokenizer.h"

namespace ranklab {

struct ScoredTokens {
  std::vector<int64_t> tokens = {};
  int64_t first = 0;  // index of the first token that is scored; earlier ones are only context
};

class EvalTokenizer {
 public:
  EvalTokenizer() = default;  // a token is a byte
  explicit EvalTokenizer(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  bool bytes() const { return !tokenizer_; }
  // XXH3 of the tokenizer's file; "" for bytes.
  std::string hash() const { return tokenizer_ ? tokenizer_->hash() : ""; }
  // If the tokenizer puts no token before a text, the first token has no context and is not scored. Throws
  // kInvalidArgument as Tokenizer::encode() does.
  ScoredTokens text(const std::string& text);
  // How many bytes of the text the scored tokens stand for.
  int64_t scored_bytes(const std::string& text, const ScoredTokens& tokens) const;
  // The tokens of the two texts together. Scored are those after the first N, where N is the number of tokens of the
  // context alone. Spaces at the context's end are moved to the continuation, because " four" is one token, whereas
  // "are " would end in a token that never occurs before "four". `first` may be 0 (there is no context) or the number
  // of tokens (there is nothing to score).
  ScoredTokens pair(std::string context, std::string continuation);

 private:
  std::vector<int64_t> encode(const std::string& text);
  std::optional<Tokenizer> tokenizer_;
};

// The tokenizer of the file or folder `path` if it is not empty; else that of the saved model (null: none), which was
// opened as `load`; else bytes, if the vocabulary is that of bytes. Throws kInvalidArgument if there is none for the
// model's vocabulary, and what open_tokenizer() throws.
EvalTokenizer choose_eval_tokenizer(const std::string& path, const SavedModel* saved, const std::string& load,
                                    int64_t vocab_size);

}  // namespace ranklab
