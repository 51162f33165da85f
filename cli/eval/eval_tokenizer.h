// Text as the tokens of a model: bytes, or what a tokenizer makes of it, behind what that puts before a text. Pairs of
// a context and what goes on from it are cut as the LM Evaluation Harness cuts them. Thread rule: one thread.
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
  int64_t first = 0;  // the first one that is scored; those before it are only what it follows
};

class EvalTokenizer {
 public:
  EvalTokenizer() = default;  // a token is a byte
  explicit EvalTokenizer(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  bool bytes() const { return !tokenizer_; }
  // XXH3 of the tokenizer's file; "" for bytes.
  std::string hash() const { return tokenizer_ ? tokenizer_->hash() : ""; }
  // Nothing is before the first token where the tokenizer puts nothing there: then that one is not scored. Throws
  // kInvalidArgument as Tokenizer::encode() does.
  ScoredTokens text(const std::string& text);
  // How many bytes of the text the scored tokens stand for.
  int64_t scored_bytes(const std::string& text, const ScoredTokens& tokens) const;
  // The tokens of both together; scored are those behind as many as the context alone has. Spaces at its end belong to
  // what goes on: " four" is a token, and "are " would end in one that no text has before "four". `first` may be 0, or
  // past the end: then there is nothing before, or nothing to score.
  ScoredTokens pair(std::string context, std::string goes_on);

 private:
  std::vector<int64_t> encode(const std::string& text);
  std::optional<Tokenizer> tokenizer_;
};

// The tokenizer of the file or folder `path` if that is not empty, else of the saved model (null: none) opened as
// `load`, else bytes for a vocabulary of them. Throws kInvalidArgument when there is none for the model's vocabulary,
// and what open_tokenizer() throws.
EvalTokenizer choose_eval_tokenizer(const std::string& path, const SavedModel* saved, const std::string& load,
                                    int64_t vocab_size);

}  // namespace ranklab
