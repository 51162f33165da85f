#include <algorithm>
#include <sstream>

#include "core/base/text.h"
#include "core/data/tokenizer/json_reader.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/data/tokenizer/tokenizer_styles.h"

namespace ranklab {
namespace {

using tokenizers::Json;
using tokenizers::JsonReader;

// Refuses a switch of the model that changes tokens in a way that is not supported here.
void check_unset(const JsonReader& in, const Json& model, const char* name) {
  const Json& value = in.member(model, name);
  const bool unset = value.is_null() || value == false || value == 0.0 || value == "";
  if (!unset) in.lacks(std::string("the model sets ") + name, tokenizers::shown_json(value), "it unset");
}

void read_model(const JsonReader& in, const Json& model, TokenizerSpec& spec) {
  // Old files do not name the type; a model with merges is a BPE.
  const std::string type =
      in.member(model, "type").is_null() && model.contains("merges") ? "BPE" : in.text(model, "type");
  if (type != "BPE") in.lacks("a model that ranklab does not have", type.substr(0, 80), "BPE");
  for (const char* name : {"byte_fallback", "dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    check_unset(in, model, name);
  read_vocab(in, in.member(model, "vocab"), spec);
  read_merges(in, in.member(model, "merges"), spec);
  spec.ignore_merges = in.flag(model, "ignore_merges", false);
  spec.fuse_unk = in.flag(model, "fuse_unk", false);
  if (in.member(model, "unk_token").is_null()) return;
  const std::string unk = in.text(model, "unk_token");
  const auto known = std::find_if(spec.vocab.begin(), spec.vocab.end(), [&](const auto& t) { return t.first == unk; });
  if (known != spec.vocab.end())
    spec.unk = known->second;
  else if (!unk.empty())
    in.refuse("the vocabulary lacks its unknown token", quote(unk.substr(0, 80)), "a token of it");
}

// For a merges file, in which each line is a merge.
Json merges_of_lines(const std::string& text) {
  Json merges = Json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) merges.push_back(line);
  }
  return merges;
}

uint32_t id_of_key(const JsonReader& in, const std::string& key) {
  const bool digits = !key.empty() && key.size() < 9 && key.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) in.refuse("an added token's key is not a number", quote(key.substr(0, 40)), "its number");
  return static_cast<uint32_t>(std::stoul(key));
}

// Reads tokenizer_config.json: its class determines the patterns, and added tokens are listed by number.
void read_config(const JsonReader& in, const std::string& text, TokenizerSpec& spec) {
  const Json config = in.parse(text);
  const Json& name = in.member(config, "tokenizer_class");
  if (!name.is_null()) {
    const std::string type = in.text(config, "tokenizer_class");
    const TokenizerStyle* const style = style_of_class(type);
    if (style == nullptr)
      in.lacks("ranklab does not know this class of tokenizers with vocab.json and merges.txt", type.substr(0, 80),
               "GPT2Tokenizer or Qwen2Tokenizer, or a tokenizer.json");
    style->set(spec);
  }
  const Json& added = in.member(config, "added_tokens_decoder");
  if (added.is_null()) return;
  if (!added.is_object()) in.refuse("\"added_tokens_decoder\" is not an object", added.type_name(), "an object");
  for (const auto& [key, token] : added.items()) spec.added.push_back(read_added_token(in, token, id_of_key(in, key)));
  std::sort(spec.added.begin(), spec.added.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
}

}  // namespace

TokenizerSpec read_tokenizer_json(const std::string& text, const std::string& path) {
  const JsonReader in(path);
  const Json file = in.parse(text);
  TokenizerSpec spec;
  if (in.member(file, "model").is_null())
    in.refuse("no tokenizer", "no \"model\" in it", "a tokenizer.json of Hugging Face");
  read_model(in, in.member(file, "model"), spec);
  spec.normal_forms = read_normalizer(in, in.member(file, "normalizer"));
  spec.pre_tokenizer = read_pre_tokenizer(in, in.member(file, "pre_tokenizer"));
  check_decoder(in, in.member(file, "decoder"));
  if (!in.member(file, "added_tokens").is_null())
    for (const Json& token : in.list(file, "added_tokens"))
      spec.added.push_back(read_added_token(in, token, in.id(in.member(token, "id"), "id")));
  check_added(in, spec);
  read_post_processor(in, in.member(file, "post_processor"), spec);
  return spec;
}

TokenizerSpec read_vocab_and_merges(const std::string& vocab, const std::string& merges, const std::string& config,
                                    const std::string& folder) {
  TokenizerSpec spec;
  const JsonReader of_vocab(folder + "/vocab.json"), of_merges(folder + "/merges.txt");
  read_vocab(of_vocab, of_vocab.parse(vocab), spec);
  read_merges(of_merges, merges_of_lines(merges), spec);
  style_of_class("GPT2Tokenizer")->set(spec);
  const JsonReader of_config(folder + "/tokenizer_config.json");
  if (!config.empty()) read_config(of_config, config, spec);
  // GPT-2's files do not mark their only special token as such.
  const auto end = std::find_if(spec.vocab.begin(), spec.vocab.end(),
                                [](const auto& token) { return token.first == "<|endoftext|>"; });
  if (spec.added.empty() && end != spec.vocab.end())
    spec.added.push_back({.id = end->second, .content = end->first, .special = true});
  check_added(of_config, spec);
  return spec;
}

}  // namespace ranklab
