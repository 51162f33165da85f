// Text processed by a tokenizer: each document as its tokens, with the special tokens that the tokenizer puts around a
// text.
#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/inputs/documents.h"
#include "core/data/inputs/inputs.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab::inputs {
namespace {

class TokenizedInput final : public TokenInput {
 public:
  TokenizedInput(const std::string& path, const InputFormat& format, Tokenizer& tokenizer)
      : path_(path),
        documents_(open_documents(path, format.json_key)),
        end_token_(format.end_token),
        tokenizer_(tokenizer) {}

  size_t read(std::span<uint32_t> out) override {
    size_t count = 0;
    while (count < out.size()) {
      if (at_ == tokens_.size() && !next_document()) break;
      const size_t some = std::min(out.size() - count, tokens_.size() - at_);
      std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(at_), some,
                  out.begin() + static_cast<std::ptrdiff_t>(count));
      at_ += some;
      count += some;
    }
    return count;
  }

 private:
  bool next_document() {
    std::string text;
    if (!documents_->next(text)) return false;
    at_ = 0;
    try {
      tokens_ = tokenizer_.encode(text);
    } catch (const Error& error) {  // it does not know the name of the file
      const ErrorText& why = error.text();
      refuse_input(path_, documents_->place(), why.what, why.got, why.want, why.fix);
    }
    if (!end_token_) return true;
    // If the tokenizer itself ends a text with this token, one is enough.
    const std::vector<uint32_t>& after = tokenizer_.spec().after;
    if (!after.empty() && after.back() == *end_token_) tokens_.pop_back();
    if (std::find(tokens_.begin(), tokens_.end(), *end_token_) != tokens_.end())
      refuse_input(path_, documents_->place(), "a document contains the token that ends documents", end_in(text),
                   "that token only at the ends of documents", "pass another --eod-token, or remove it from the text");
    tokens_.push_back(*end_token_);
    return true;
  }

  // "token 0, '<|endoftext|>', at byte 17, line 2": a text file is one document, however long.
  std::string end_in(const std::string& text) const {
    const std::string content = tokenizer_.decode(std::vector<int64_t>{*end_token_});
    std::string out = "token " + std::to_string(*end_token_) + ", " + quote(content);
    const size_t at = text.find(content);
    if (content.empty() || at == std::string::npos) return out;  // a normalizer produced it from other characters
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return out + strprintf(", at byte %zu, line %td", at, line);
  }

  std::string path_;
  std::unique_ptr<Documents> documents_;
  std::optional<uint32_t> end_token_;
  Tokenizer& tokenizer_;
  std::vector<uint32_t> tokens_;
  size_t at_ = 0;  // position in the tokens
};

}  // namespace

std::unique_ptr<TokenInput> open_tokenized(const std::string& path, const InputFormat& format, Tokenizer& tokenizer) {
  return std::make_unique<TokenizedInput>(path, format, tokenizer);
}

}  // namespace ranklab::inputs
