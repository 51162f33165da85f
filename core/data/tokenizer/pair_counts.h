// The words of a corpus as tokens, the number of occurrences of each pair of neighbours, and a queue of pairs in the
// order in which they are merged. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ranklab {

using TokenPair = std::pair<uint32_t, uint32_t>;

class PairCounts {
 public:
  void add_word(std::vector<uint32_t> tokens, int64_t count);
  // Call after the last word, and after each merge.
  void queue_new_pairs();

  struct Best {
    TokenPair pair;
    int64_t count;
    std::vector<uint32_t> words;  // indices of the words that contain it
  };
  // Takes the most frequent pair from the queue; among equal ones, the pair with the smallest tokens.
  std::optional<Best> take_best();
  // Replaces the pair by `merged` in its words, and updates the counts of the pairs that appear and disappear.
  void merge(const Best& best, uint32_t merged);

 private:
  struct Hash {
    size_t operator()(const TokenPair& pair) const {
      return static_cast<size_t>((uint64_t{pair.first} << 32 | pair.second) * 0x9E3779B97F4A7C15u >> 16);
    }
  };
  struct Less {
    bool operator()(const Best& a, const Best& b) const {
      return a.count != b.count ? a.count < b.count : a.pair > b.pair;
    }
  };
  struct Word {
    std::vector<uint32_t> tokens;
    int64_t count;
  };
  void change(TokenPair pair, uint32_t word, int64_t by);

  std::vector<Word> words_;
  std::unordered_map<TokenPair, int64_t, Hash> counts_;
  // words in which the pair has appeared since the last call of queue_new_pairs()
  std::unordered_map<TokenPair, std::vector<uint32_t>, Hash> fresh_;
  std::vector<Best> heap_;
};

}  // namespace ranklab
