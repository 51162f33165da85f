// A byte-level BPE tokenizer from files of Hugging Face: tokenizer.json, or a folder with it, or with vocab.json and
// merges.txt. Its ids are those of the package tokenizers; a test compares them. Cost: opening reads and checks the
// files (a second for 10 MB), encoding makes 15 to 50 MB a second where words repeat, as in text (`ranklab data
// tokenizer info --bench`). Thread rule: one thread at a time.
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
  // `text`: a tokenizer.json, `path` for messages. Throws kBadFile or kInvalidArgument.
  Tokenizer(std::string text, const std::string& path);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // With what the file's post-processor puts around a text if `whole`, such as a token that begins it. Throws
  // kInvalidArgument when the text is not UTF-8, or a pattern gives up on it.
  std::vector<uint32_t> encode(std::string_view text, bool whole = true);
  // The bytes of these tokens: UTF-8 if they are whole characters. Throws kInvalidArgument for numbers of no token.
  std::string decode(std::span<const int64_t> tokens, bool skip_special = false) const;

  int64_t vocab_size() const;  // the largest number and one
  const TokenizerSpec& spec() const;
  const std::string& json() const;  // the file
  std::string hash() const;         // XXH3 of it
  // What ends a document: what tokenizer_config.json names, or else the first of the usual names that it has.
  std::optional<uint32_t> end_token() const;
  void set_end_token(const std::string& content);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

inline constexpr const char* kTokenizerFile = "tokenizer.json";

// `path`: the file or the folder. Throws kIo too.
Tokenizer open_tokenizer(const std::string& path);
// The folder's tokenizer.json; nothing when it has none.
std::optional<Tokenizer> find_tokenizer(const std::string& folder);

}  // namespace ranklab
