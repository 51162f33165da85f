// Between text and the tokens of a run: bytes, or what the tokenizer of its data or checkpoint makes of it.
// Cost: a tokenizer's file is read once. Thread rule: any thread; one at a time works.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/data/tokenizer/tokenizer.h"

namespace ranklab {

class TextCodec {
 public:
  TextCodec() = default;  // a token is a byte
  explicit TextCodec(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  int64_t vocab_size() const;
  // The tokenizer.json that goes with the weights; "" for bytes.
  std::string tokenizer_json() const { return tokenizer_ ? tokenizer_->json() : ""; }
  // The token that ends a document, if the tokenizer has one.
  std::optional<int64_t> end_token() const { return tokenizer_ ? tokenizer_->end_token() : std::nullopt; }
  // Tokens of a text to continue: with the tokens that the tokenizer puts before a text, without those behind it.
  std::vector<int64_t> prompt(const std::string& text);
  // For a terminal: what is no character, or controls it, is replaced. Tokens that the tokenizer does not know, as of a
  // vocabulary that was padded, too.
  std::string shown(const std::vector<int64_t>& tokens) const;

 private:
  std::mutex mutex_;
  std::optional<Tokenizer> tokenizer_;
};

// A codec of bytes if the vocabulary is bytes, of the tokenizer if there is one; else null.
std::shared_ptr<TextCodec> make_text_codec(std::optional<Tokenizer> tokenizer, int64_t vocab_size);

}  // namespace ranklab
