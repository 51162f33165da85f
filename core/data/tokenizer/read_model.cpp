// Reads the vocabulary and the merges of a tokenizer, from tokenizer.json or from vocab.json and merges.txt.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/base/text.h"
#include "core/data/tokenizer/json_reader.h"

namespace ranklab::tokenizers {
namespace {

// Ids may have gaps, but not so many that the table of all ids consists mostly of gaps.
constexpr size_t kMostGaps = 1024;

std::string shown(std::string_view token) {
  constexpr size_t kShown = 60;
  return quote(without_controls(std::string(token.substr(0, kShown)) + (token.size() > kShown ? "..." : "")));
}

struct PairOfNames {
  std::string_view left, right;
};

// "a b", or ["a", "b"] in newer files, because tokens may contain spaces.
PairOfNames names_of(const JsonReader& in, const Json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
  if (!merge.is_string()) in.refuse("a merge is not a pair of tokens", shown_json(merge), "\"a b\"");
  const std::string_view line = merge.get_ref<const std::string&>();
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
    in.refuse("a merge is not a pair of tokens", shown(line), "two tokens with a space between them");
  return {line.substr(0, space), line.substr(space + 1)};
}

}  // namespace

void read_vocab(const JsonReader& in, const Json& vocab, TokenizerSpec& spec) {
  if (!vocab.is_object()) in.refuse("the vocabulary is not an object", vocab.type_name(), "tokens with their ids");
  if (vocab.empty()) in.refuse("the vocabulary is empty", "0 tokens", "1 or more");
  for (const auto& [token, id] : vocab.items()) spec.vocab.emplace_back(token, in.id(id, "vocab"));
  std::sort(spec.vocab.begin(), spec.vocab.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (size_t i = 1; i < spec.vocab.size(); ++i) {
    if (spec.vocab[i].second == spec.vocab[i - 1].second)
      in.refuse("two tokens have the same id", shown(spec.vocab[i - 1].first) + " and " + shown(spec.vocab[i].first),
                "an id for each");
  }
  if (spec.vocab.back().second > 2 * spec.vocab.size() + kMostGaps)
    in.refuse("the token ids have wide gaps",
              std::to_string(spec.vocab.size()) + " tokens up to " + std::to_string(spec.vocab.back().second),
              "consecutive ids");
}

void read_merges(const JsonReader& in, const Json& merges, TokenizerSpec& spec) {
  if (!merges.is_array()) in.refuse("\"merges\" is not a list", merges.type_name(), "a list");
  std::unordered_map<std::string_view, uint32_t> ids;
  for (const auto& [token, id] : spec.vocab) ids.emplace(token, id);
  const auto id_of = [&](std::string_view token) {
    const auto found = ids.find(token);
    if (found == ids.end())
      in.refuse("a merge names a token that the vocabulary lacks", shown(token), "a token of the vocabulary");
    return found->second;
  };
  std::string merged;
  spec.merges.reserve(merges.size());
  for (const Json& merge : merges) {
    if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version")) continue;
    const auto [left, right] = names_of(in, merge);
    merged = left;
    merged += right;
    spec.merges.push_back({id_of(left), id_of(right), id_of(merged)});
  }
}

AddedToken read_added_token(const JsonReader& in, const Json& token, uint32_t id) {
  constexpr size_t kLongest = 1024;  // limited because it may be looked for at every byte of a text
  AddedToken added{.id = id, .content = in.text(token, "content")};
  if (added.content.size() > kLongest)
    in.lacks("an added token is too long", std::to_string(added.content.size()) + " bytes", "at most 1024");
  added.special = in.flag(token, "special", false);
  added.single_word = in.flag(token, "single_word", false);
  added.lstrip = in.flag(token, "lstrip", false);
  added.rstrip = in.flag(token, "rstrip", false);
  added.normalized = in.flag(token, "normalized", !added.special);
  return added;
}

void check_added(const JsonReader& in, const TokenizerSpec& spec) {
  std::unordered_map<std::string_view, uint32_t> ids;
  std::unordered_map<uint32_t, std::string_view> names;
  for (const auto& [token, id] : spec.vocab) {
    ids.emplace(token, id);
    names.emplace(id, token);
  }
  for (const AddedToken& token : spec.added) {
    const auto known = ids.emplace(token.content, token.id).first;
    const auto named = names.emplace(token.id, token.content).first;
    if (known->second != token.id)
      in.refuse("an added token has two ids: " + shown(token.content), std::to_string(token.id),
                std::to_string(known->second) + ", which it has already");
    if (named->second != token.content)
      in.refuse("two tokens have the same id", shown(named->second) + " and " + shown(token.content), "an id for each");
    if (token.id > 2 * names.size() + kMostGaps)
      in.refuse("the token ids have wide gaps", std::to_string(token.id), "consecutive ids");
  }
}

}  // namespace ranklab::tokenizers
