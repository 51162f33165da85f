// Converts between text and the tokens of a run: bytes, or the tokens of the tokenizer that belongs to its data or
// checkpoint. Cost: a tokenizer's file is read once. Thread rule: any thread; calls are serialized.
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
  // The tokenizer.json that belongs to the weights; "" for bytes.
  std::string tokenizer_json() const { return tokenizer_ ? tokenizer_->json() : ""; }
  // The token that ends a document, if the tokenizer has one.
  std::optional<int64_t> end_token() const { return tokenizer_ ? tokenizer_->end_token() : std::nullopt; }
  // The tokens of a text that is to be continued, including those that the tokenizer puts before a text, but not those
  // that it puts after one.
  std::vector<int64_t> prompt(const std::string& text);
  // For a terminal: bytes that form no character, and control characters, are replaced. So are tokens that the
  // tokenizer does not know, such as those of a padded vocabulary.
  std::string shown(const std::vector<int64_t>& tokens) const;

 private:
  std::mutex mutex_;
  std::optional<Tokenizer> tokenizer_;
};

// A codec of bytes if the vocabulary consists of bytes, of the tokenizer if there is one, else null.
std::shared_ptr<TextCodec> make_text_codec(std::optional<Tokenizer> tokenizer, int64_t vocab_size);

}  // namespace ranklab
