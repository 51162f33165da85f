// A byte-level BPE tokenizer from Hugging Face files: tokenizer.json, or a folder that contains it, or one with
// vocab.json and merges.txt. Its ids are those of the package `tokenizers`, which a test checks. Cost: opening reads
// and checks the files (a second for 10 MB); encoding processes 15 to 50 MB per second if words repeat, as they do in
// text (`ranklab data tokenizer info --bench`). Thread rule: one thread at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ranklab {

struct TokenizerSpec;

class Tokenizer {
 public:
  // `text`: the contents of a tokenizer.json; `path` is used in messages. Throws kBadFile or kInvalidArgument.
  Tokenizer(std::string text, const std::string& path);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // If `whole`, includes what the file's post-processor puts around a text, such as a token that begins it. Throws
  // kInvalidArgument when the text is not UTF-8, or when a pattern gives up on it.
  std::vector<uint32_t> encode(std::string_view text, bool whole = true);
  // The bytes of these tokens, which are UTF-8 if they form whole characters. Throws kInvalidArgument for numbers that
  // are not tokens.
  std::string decode(std::span<const int64_t> tokens, bool skip_special = false) const;

  int64_t vocab_size() const;  // the largest id plus one
  const TokenizerSpec& spec() const;
  const std::string& json() const;  // the text of the file
  std::string hash() const;         // XXH3 of that text
  // The token that ends a document: the one that tokenizer_config.json names, or else the first of the usual names that
  // it has.
  std::optional<uint32_t> end_token() const;
  void set_end_token(const std::string& content);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

inline constexpr const char* kTokenizerFile = "tokenizer.json";

// `path`: the file or the folder. Also throws kIo.
Tokenizer open_tokenizer(const std::string& path);
// The tokenizer in the folder's tokenizer.json; nothing if there is no such file.
std::optional<Tokenizer> find_tokenizer(const std::string& folder);

}  // namespace ranklab
