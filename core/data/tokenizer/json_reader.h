// What the readers of a tokenizer's JSON share: members by name with the place in the file, and the two refusals.
// Thread rule: one thread.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab::tokenizers {

using Json = nlohmann::json;

// For a message; of a list or an object only what it is, since it may nest deeply and printing recurses.
std::string shown_json(const Json& value);

class JsonReader {
 public:
  explicit JsonReader(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  // Throws kBadFile when it is no JSON.
  Json parse(const std::string& text) const;
  // The member, or null where there is none. Throws kBadFile when `object` is none.
  const Json& member(const Json& object, const char* name) const;
  bool flag(const Json& object, const char* name, bool otherwise) const;
  std::string text(const Json& object, const char* name) const;
  uint32_t id(const Json& value, const char* name) const;
  const Json& list(const Json& object, const char* name) const;

  // The file is damaged: kBadFile.
  [[noreturn]] void refuse(std::string what, std::string got, std::string want) const;
  // It asks for what ranklab does not have: kInvalidArgument.
  [[noreturn]] void lacks(std::string what, std::string got, std::string want) const;

 private:
  std::string path_;
};

std::vector<NormalForm> read_normalizer(const JsonReader& in, const Json& normalizer);
PreTokenizerSpec read_pre_tokenizer(const JsonReader& in, const Json& pre_tokenizer);
void read_post_processor(const JsonReader& in, const Json& post_processor, TokenizerSpec& spec);
void check_decoder(const JsonReader& in, const Json& decoder);
// vocab, merges and the model's switches, from an object with them.
void read_vocab(const JsonReader& in, const Json& vocab, TokenizerSpec& spec);
void read_merges(const JsonReader& in, const Json& merges, TokenizerSpec& spec);
AddedToken read_added_token(const JsonReader& in, const Json& token, uint32_t id);
// Each with an id of its own, and that of the vocabulary if it has the token.
void check_added(const JsonReader& in, const TokenizerSpec& spec);

}  // namespace ranklab::tokenizers
