#include "core/data/tokenizer/pair_counts.h"

#include <algorithm>
#include <utility>

namespace ranklab {

void PairCounts::change(TokenPair pair, uint32_t word, int64_t by) {
  counts_[pair] += by * words_[word].count;
  if (by <= 0) return;
  std::vector<uint32_t>& words = fresh_[pair];
  if (words.empty() || words.back() != word) words.push_back(word);
}

void PairCounts::add_word(std::vector<uint32_t> tokens, int64_t count) {
  const auto word = static_cast<uint32_t>(words_.size());
  words_.push_back({std::move(tokens), count});
  const std::vector<uint32_t>& own = words_.back().tokens;
  for (size_t i = 1; i < own.size(); ++i) change({own[i - 1], own[i]}, word, 1);
}

// A pair may be in the queue more than once, each time with other words.
void PairCounts::queue_new_pairs() {
  for (auto& [pair, words] : fresh_) {
    const int64_t count = counts_[pair];
    if (count <= 0) continue;
    heap_.push_back({pair, count, std::move(words)});
    std::push_heap(heap_.begin(), heap_.end(), Less());
  }
  fresh_.clear();
}

std::optional<PairCounts::Best> PairCounts::take_best() {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), Less());
    Best& last = heap_.back();
    const int64_t now = counts_[last.pair];
    if (now == last.count) {
      Best best = std::move(last);
      heap_.pop_back();
      return best;
    }
    last.count = now;  // other merges have consumed some since then
    if (now > 0)
      std::push_heap(heap_.begin(), heap_.end(), Less());
    else
      heap_.pop_back();
  }
  return {};
}

void PairCounts::merge(const Best& best, uint32_t merged) {
  const auto [left, right] = best.pair;
  for (const uint32_t word : best.words) {
    std::vector<uint32_t>& tokens = words_[word].tokens;
    size_t kept = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] != left || i + 1 == tokens.size() || tokens[i + 1] != right) {
        tokens[kept++] = tokens[i];
        continue;
      }
      if (kept > 0) {
        change({tokens[kept - 1], left}, word, -1);
        change({tokens[kept - 1], merged}, word, 1);
      }
      tokens[kept++] = merged;
      ++i;
      if (i + 1 == tokens.size()) continue;
      change({right, tokens[i + 1]}, word, -1);
      change({merged, tokens[i + 1]}, word, 1);
    }
    tokens.resize(kept);
  }
}

}  // namespace ranklab
