// Finds added tokens in a text: among those that begin first, the longest; matches do not overlap. Cost: a table
// look-up per byte, and a walk through a trie where a token may begin. Thread rule: one thread at a time.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/tokenizer/pattern.h"
#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

class AddedTokens {
 public:
  // `contents`: what to look for instead of the tokens' own contents, in the same order.
  AddedTokens(std::span<const AddedToken> tokens, std::span<const std::string> contents);

  using TakeText = std::function<void(std::string_view)>;
  using TakeToken = std::function<void(uint32_t id)>;
  // Calls the functions for the parts of the text, in order; pieces of text are not empty.
  void split(std::string_view text, const TakeText& take_text, const TakeToken& take_token) const;

 private:
  struct Node {
    std::unordered_map<char, uint32_t> next = {};
    std::optional<size_t> token = {};
  };
  struct Match {
    TextSpan place;
    size_t token;
  };
  std::optional<Match> find(std::string_view text, size_t from) const;
  bool is_single_word(std::string_view text, TextSpan place) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_{1};
  std::array<bool, 256> begins_ = {};  // whether a token begins with this byte
  Pattern word_;
};

}  // namespace ranklab
