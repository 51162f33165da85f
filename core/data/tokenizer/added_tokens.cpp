#include "core/data/tokenizer/added_tokens.h"

#include <algorithm>

#include "core/data/tokenizer/normalize.h"

namespace ranklab {
namespace {

size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (text[at] & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::span<const AddedToken> tokens, std::span<const std::string> contents)
    : tokens_(tokens.begin(), tokens.end()), word_(R"([\w\x{200C}\x{200D}])", "tokenizer") {
  for (size_t i = 0; i < contents.size(); ++i) {
    if (contents[i].empty()) continue;
    uint32_t node = 0;
    for (const char c : contents[i]) {
      const auto [place, is_new] = nodes_[node].next.try_emplace(c, static_cast<uint32_t>(nodes_.size()));
      node = place->second;
      if (is_new) nodes_.emplace_back();
    }
    if (!nodes_[node].token) nodes_[node].token = i;
    begins_[static_cast<unsigned char>(contents[i][0])] = true;
  }
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_[static_cast<unsigned char>(text[begin])]) continue;
    std::optional<Match> longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto next = nodes_[node].next.find(text[at]);
      if (next == nodes_[node].next.end()) break;
      node = next->second;
      if (nodes_[node].token) longest = Match{{begin, at + 1}, *nodes_[node].token};
    }
    if (longest) return longest;
  }
  return {};
}

bool AddedTokens::is_single_word(std::string_view text, TextSpan place) const {
  const auto is_word = [this](std::string_view character) { return word_.find(character, 0).has_value(); };
  if (place.begin > 0) {
    const size_t last = last_character(text.substr(0, place.begin));
    if (is_word(text.substr(last, place.begin - last))) return false;
  }
  const std::string_view rest = text.substr(place.end);
  if (rest.empty()) return true;
  const size_t second =
      std::find_if(rest.begin() + 1, rest.end(), [](char c) { return (c & 0xC0) != 0x80; }) - rest.begin();
  return !is_word(rest.substr(0, second));
}

// The spaces that a token takes after it may belong to the contents of the next token. That one is found all the same,
// so that they count for both, as in the tokenizers of Hugging Face (AddedVocabulary::find_matches).
void AddedTokens::split(std::string_view text, const TakeText& take_text, const TakeToken& take_token) const {
  size_t done = 0, from = 0;
  while (const std::optional<Match> match = find(text, from)) {
    const AddedToken& token = tokens_[match->token];
    auto [begin, end] = match->place;
    from = end;
    if (token.single_word && !is_single_word(text, match->place)) continue;
    if (token.lstrip && done < begin) {
      while (const size_t space = trailing_space(text.substr(done, begin - done))) begin -= space;
    }
    if (token.rstrip) {
      while (const size_t space = leading_space(text.substr(end))) end += space;
    }
    if (done < begin) take_text(text.substr(done, begin - done));
    take_token(token.id);
    done = end;
  }
  if (done < text.size()) take_text(text.substr(done));
}

}  // namespace ranklab
