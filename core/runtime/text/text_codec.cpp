#include "core/runtime/text/text_codec.h"

#include <utility>

#include "core/base/utf8.h"
#include "core/data/token_dataset.h"
#include "core/data/tokenizer/tokenizer_spec.h"
#include "core/runtime/text/generate.h"

namespace ranklab {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

}  // namespace

int64_t TextCodec::vocab_size() const { return tokenizer_ ? tokenizer_->vocab_size() : ByteTokenizer::kVocabSize; }

std::vector<int64_t> TextCodec::prompt(const std::string& text) {
  if (!tokenizer_) return prompt_tokens(text);
  const std::lock_guard lock(mutex_);
  const std::vector<uint32_t>& before = tokenizer_->spec().before;
  std::vector<int64_t> tokens(before.begin(), before.end());
  const std::vector<uint32_t> own = tokenizer_->encode(text, false);
  tokens.insert(tokens.end(), own.begin(), own.end());
  return tokens;
}

std::string TextCodec::shown(const std::vector<int64_t>& tokens) const {
  if (!tokenizer_) return printable_text(tokens);
  std::string bytes;
  for (const int64_t token : tokens)
    bytes += token < tokenizer_->vocab_size() ? tokenizer_->decode({&token, 1}) : std::string(kReplacement);
  return readable_text(bytes, kReplacement);
}

std::shared_ptr<TextCodec> make_text_codec(std::optional<Tokenizer> tokenizer, int64_t vocab_size) {
  if (tokenizer) return std::make_shared<TextCodec>(std::move(*tokenizer));
  return vocab_size == ByteTokenizer::kVocabSize ? std::make_shared<TextCodec>() : nullptr;
}

}  // namespace ranklab
