// What the readers of a tokenizer's JSON share: access to members by name, with their place in the file, and the two
// kinds of refusals. Thread rule: one thread.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab::tokenizers {

using Json = nlohmann::json;

// Shows a value in a message; of a list or an object only its kind, since it may be deeply nested and printing
// recurses.
std::string shown_json(const Json& value);

class JsonReader {
 public:
  explicit JsonReader(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  // Throws kBadFile when it is not JSON.
  Json parse(const std::string& text) const;
  // The member, or null if there is none. Throws kBadFile when `object` is not an object.
  const Json& member(const Json& object, const char* name) const;
  bool flag(const Json& object, const char* name, bool otherwise) const;
  std::string text(const Json& object, const char* name) const;
  uint32_t id(const Json& value, const char* name) const;
  const Json& list(const Json& object, const char* name) const;

  // For a damaged file: throws kBadFile.
  [[noreturn]] void refuse(std::string what, std::string got, std::string want) const;
  // For a file that requires a feature which ranklab does not have: throws kInvalidArgument.
  [[noreturn]] void lacks(std::string what, std::string got, std::string want) const;

 private:
  std::string path_;
};

std::vector<NormalForm> read_normalizer(const JsonReader& in, const Json& normalizer);
PreTokenizerSpec read_pre_tokenizer(const JsonReader& in, const Json& pre_tokenizer);
void read_post_processor(const JsonReader& in, const Json& post_processor, TokenizerSpec& spec);
void check_decoder(const JsonReader& in, const Json& decoder);
// Read vocab, merges and the model's switches from an object that contains them.
void read_vocab(const JsonReader& in, const Json& vocab, TokenizerSpec& spec);
void read_merges(const JsonReader& in, const Json& merges, TokenizerSpec& spec);
AddedToken read_added_token(const JsonReader& in, const Json& token, uint32_t id);
// Checks that each added token has its own id, which is the vocabulary's if the vocabulary has the token.
void check_added(const JsonReader& in, const TokenizerSpec& spec);

}  // namespace ranklab::tokenizers
