#include "core/data/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/byte_alphabet.h"
#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/tokenizer/added_tokens.h"
#include "core/data/tokenizer/bpe.h"
#include "core/data/tokenizer/normalize.h"
#include "core/data/tokenizer/pre_tokenize.h"
#include "core/data/tokenizer/tokenizer_file.h"

namespace ranklab {
namespace {

// Tokens that end a document in GPT-2 and Qwen, Llama 3, DeepSeek-V3, and others.
constexpr std::array kEnds = {"<|endoftext|>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "</s>", "<eos>"};

std::vector<AddedToken> added_of(const TokenizerSpec& spec, bool normalized) {
  std::vector<AddedToken> tokens;
  for (const AddedToken& token : spec.added)
    if (token.normalized == normalized) tokens.push_back(token);
  return tokens;
}

// Tokens that are matched in normalized text are normalized themselves.
AddedTokens finder(const TokenizerSpec& spec, bool after_normalization) {
  const std::vector<AddedToken> tokens = added_of(spec, after_normalization);
  std::vector<std::string> contents;
  for (const AddedToken& token : tokens)
    contents.push_back(after_normalization ? normalized(token.content, spec.normal_forms) : token.content);
  return {tokens, contents};
}

// Like the decoder ByteLevel, also for added tokens: a token whose characters do not all spell bytes stands for its own
// text.
std::string bytes_of(const std::string& spelling) { return bytes_of_spelling(spelling).value_or(spelling); }

}  // namespace

struct Tokenizer::Parts {
  Parts(std::string json_text, const std::string& path)
      : spec(read_tokenizer_json(json_text, path)),
        json(std::move(json_text)),
        before_normalization(finder(spec, false)),
        after_normalization(finder(spec, true)),
        pre_tokenizer(spec.pre_tokenizer, "tokenizer " + quote(path)),
        bpe(spec) {
    for (const auto& [spelling, id] : spec.vocab) set(id, bytes_of(spelling));
    for (const AddedToken& token : spec.added) {
      set(token.id, bytes_of(token.content));
      if (token.special) special[token.id] = true;
    }
    for (const char* name : kEnds)
      if (!end_token) end_token = id_of(name);
  }
  void set(uint32_t id, std::string bytes) {
    if (id >= bytes_of_id.size()) {
      bytes_of_id.resize(size_t{id} + 1);
      special.resize(size_t{id} + 1);
    }
    bytes_of_id[id] = std::move(bytes);
  }
  std::optional<uint32_t> id_of(std::string_view content) const {
    for (const AddedToken& token : spec.added)
      if (token.content == content) return token.id;
    for (const auto& [spelling, id] : spec.vocab)
      if (spelling == content) return id;
    return {};
  }

  TokenizerSpec spec;
  std::string json;
  AddedTokens before_normalization, after_normalization;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  std::vector<std::string> bytes_of_id;
  std::vector<bool> special;
  std::optional<uint32_t> end_token;
};

Tokenizer::Tokenizer(std::string text, const std::string& path)
    : parts_(std::make_unique<Parts>(std::move(text), path)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<uint32_t> Tokenizer::encode(std::string_view text, bool whole) {
  require_utf8(text);
  std::vector<uint32_t> ids;
  const auto take_id = [&](uint32_t id) { ids.push_back(id); };
  const auto take_word = [&](std::string_view word) { parts_->bpe.encode(word, ids); };
  const auto take_normalized = [&](std::string_view piece) { parts_->pre_tokenizer.split(piece, take_word); };
  const auto take_piece = [&](std::string_view piece) {
    if (parts_->spec.normal_forms.empty()) {
      parts_->after_normalization.split(piece, take_normalized, take_id);
    } else {
      parts_->after_normalization.split(normalized(piece, parts_->spec.normal_forms), take_normalized, take_id);
    }
  };
  if (whole) ids = parts_->spec.before;
  parts_->before_normalization.split(text, take_piece, take_id);
  if (whole) ids.insert(ids.end(), parts_->spec.after.begin(), parts_->spec.after.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const int64_t> tokens, bool skip_special) const {
  std::string text;
  for (const int64_t token : tokens) {
    RANKLAB_CHECK(token >= 0 && token < vocab_size(), ErrorKind::kInvalidArgument, .where = "tokenizer",
                  .what = "no such token", .got = std::to_string(token),
                  .want = "0 to " + std::to_string(vocab_size() - 1), .fix = "use the tokenizer that made the tokens");
    const auto id = static_cast<size_t>(token);
    if (!skip_special || !parts_->special[id]) text += parts_->bytes_of_id[id];
  }
  return text;
}

int64_t Tokenizer::vocab_size() const { return static_cast<int64_t>(parts_->bytes_of_id.size()); }
const TokenizerSpec& Tokenizer::spec() const { return parts_->spec; }
const std::string& Tokenizer::json() const { return parts_->json; }
std::string Tokenizer::hash() const { return xxh3_text(xxh3(std::as_bytes(std::span(parts_->json)))); }
std::optional<uint32_t> Tokenizer::end_token() const { return parts_->end_token; }
void Tokenizer::set_end_token(const std::string& content) {
  if (const std::optional<uint32_t> id = parts_->id_of(content)) parts_->end_token = id;
}

}  // namespace ranklab
