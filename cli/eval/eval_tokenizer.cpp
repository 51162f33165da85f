#include "cli/eval/eval_tokenizer.h"

#include <algorithm>
#include <utility>

#include "cli/model/saved_tokenizer.h"
#include "core/base/error.h"
#include "core/data/token_dataset.h"
#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

std::vector<int64_t> EvalTokenizer::encode(const std::string& text) {
  if (!tokenizer_) return ByteTokenizer::encode(text);
  const std::vector<uint32_t>& before = tokenizer_->spec().before;
  std::vector<int64_t> tokens(before.begin(), before.end());
  const std::vector<uint32_t> own = tokenizer_->encode(text, false);  // without end tokens, since the text may continue
  tokens.insert(tokens.end(), own.begin(), own.end());
  return tokens;
}

ScoredTokens EvalTokenizer::text(const std::string& text) {
  const size_t before = tokenizer_ ? tokenizer_->spec().before.size() : 0;
  return {encode(text), std::max<int64_t>(1, static_cast<int64_t>(before))};
}

int64_t EvalTokenizer::scored_bytes(const std::string& text, const ScoredTokens& tokens) const {
  const auto all = static_cast<int64_t>(text.size());
  if (!tokenizer_) return all - 1;
  if (!tokenizer_->spec().before.empty() || tokens.tokens.empty()) return all;
  std::string first = tokenizer_->decode(std::span(tokens.tokens).first(1));
  if (!text.starts_with(first) && first.starts_with(' ')) first.erase(0, 1);  // some tokenizers add it
  return std::max<int64_t>(0, all - static_cast<int64_t>(first.size()));
}

ScoredTokens EvalTokenizer::pair(std::string context, std::string continuation) {
  const size_t end = context.find_last_not_of(" \t\n\v\f\r") + 1;  // 0: all of the context is spaces
  continuation.insert(0, context, end);
  context.resize(end);
  return {encode(context + continuation), static_cast<int64_t>(encode(context).size())};
}

EvalTokenizer choose_eval_tokenizer(const std::string& path, const SavedModel* saved, const std::string& load,
                                    int64_t vocab_size) {
  if (!path.empty()) return EvalTokenizer(open_tokenizer(path));
  std::vector<std::string> notes;
  std::optional<Tokenizer> own;
  if (saved != nullptr) own = saved->checkpoint ? tokenizer_of(*saved->checkpoint) : saved_tokenizer(load, notes);
  if (own) return EvalTokenizer(std::move(*own));
  RANKLAB_CHECK(notes.empty() && vocab_size == ByteTokenizer::kVocabSize, ErrorKind::kInvalidArgument, .where = "eval",
                .what = "the text needs the model's tokenizer, and there is none",
                .got = notes.empty() ? "a vocabulary of " + std::to_string(vocab_size) + " tokens" : notes[0],
                .want = "a tokenizer.json beside the weights, or the " + std::to_string(ByteTokenizer::kVocabSize) +
                        " tokens of bytes",
                .fix = "pass it with --tokenizer DIR, or evaluate tokens: --text FOLDER of ranklab data prepare");
  return {};
}

}  // namespace ranklab
