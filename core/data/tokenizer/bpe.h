// Byte-pair encoding of a word: its bytes become tokens; then, among neighbouring tokens that have a merge, the pair
// whose merge was learned first is joined (the leftmost if there are several), until none is left. Cost: O(n log n) for
// a word of n bytes, even a hostile one; words seen before are looked up. Thread rule: one thread at a time.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/tokenizer/pair_table.h"
#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

class Bpe {
 public:
  explicit Bpe(const TokenizerSpec& spec);
  // Appends the word's tokens. REQUIRES: the word is not empty.
  void encode(std::string_view word, std::vector<uint32_t>& out);

 private:
  // Transparent, so that a word can be looked up without copying it out of its text.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Symbol {
    uint32_t token;
    int32_t previous, next;  // -1: none
    bool gone = false;
  };
  struct Candidate {
    uint32_t rank, position, merged;
    // Orders a heap so that its first element has the smallest rank.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  struct Stretch {
    uint32_t begin, size;
  };
  void merge(std::string_view word, std::vector<uint32_t>& out);
  void read_symbols(std::string_view word);
  void add_candidate(int32_t left);
  void join(const Candidate& best);

  PairTable merges_;
  std::array<std::optional<uint32_t>, 256> of_byte_ = {};
  // words that are tokens, if merges are ignored for them
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> words_;
  std::optional<uint32_t> unk_;
  bool fuse_unk_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
  // words seen before; their tokens are in known_tokens_
  std::unordered_map<std::string, Stretch, Hash, std::equal_to<>> known_;
  std::vector<uint32_t> known_tokens_;
};

}  // namespace ranklab
