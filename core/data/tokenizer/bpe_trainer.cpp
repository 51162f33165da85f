#include "core/data/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "core/base/byte_alphabet.h"
#include "core/base/error.h"
#include "core/data/tokenizer/normalize.h"

namespace ranklab {
namespace {

constexpr size_t kBytes = 256;

using TokenPair = std::pair<uint32_t, uint32_t>;

// The words of a corpus as tokens, the number of occurrences of each pair of neighbours, and a queue of pairs in the
// order in which they are merged.
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

// Maps tokens to numbers and back.
class Vocabulary {
 public:
  // RETURNS: the existing number of the token, or a new one.
  uint32_t add(const std::string& token) {
    const auto [place, is_new] = ids_.try_emplace(token, static_cast<uint32_t>(names_.size()));
    if (is_new) names_.push_back(token);
    return place->second;
  }
  const std::string& name(uint32_t id) const { return names_[id]; }
  size_t size() const { return names_.size(); }
  std::vector<std::pair<std::string, uint32_t>> list() const {
    std::vector<std::pair<std::string, uint32_t>> all;
    for (size_t id = 0; id < names_.size(); ++id) all.emplace_back(names_[id], static_cast<uint32_t>(id));
    return all;
  }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> ids_;
};

std::vector<uint32_t> add_bytes(Vocabulary& vocabulary) {
  std::map<char32_t, uint8_t> in_order;
  for (size_t byte = 0; byte < kBytes; ++byte)
    in_order[byte_code_point(static_cast<uint8_t>(byte))] = static_cast<uint8_t>(byte);
  std::vector<uint32_t> ids(kBytes);
  for (const auto& [point, byte] : in_order)
    ids[byte] = vocabulary.add(spelled_bytes(std::string(1, static_cast<char>(byte))));
  return ids;
}

// A pair may be merged again in words in which it appeared later. Only its last position counts, as in the reader's
// table.
std::vector<MergeRule> without_repeats(const std::vector<MergeRule>& merges) {
  std::unordered_set<uint64_t> seen;
  std::vector<MergeRule> kept;
  for (auto merge = merges.rbegin(); merge != merges.rend(); ++merge)
    if (seen.insert(uint64_t{merge->left} << 32 | merge->right).second) kept.push_back(*merge);
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

BpeTrainer::BpeTrainer(TokenizerSpec style)
    : style_(std::move(style)), pre_tokenizer_(style_.pre_tokenizer, "tokenizer training") {}

void BpeTrainer::add(std::string_view text) {
  require_utf8(text);
  const std::string normal = normalized(text, style_.normal_forms);
  pre_tokenizer_.split(normal, [this](std::string_view word) { ++counts_[std::string(word)]; });
}

TokenizerSpec BpeTrainer::train(const BpeTraining& options) const {
  Vocabulary vocabulary;
  TokenizerSpec spec = style_;
  for (const std::string& token : options.special) {
    const size_t before = vocabulary.size();
    const uint32_t id = vocabulary.add(token);
    if (vocabulary.size() > before) spec.added.push_back({.id = id, .content = token, .special = true});
  }
  const std::vector<uint32_t> of_byte = add_bytes(vocabulary);
  RANKLAB_CHECK(vocabulary.size() <= static_cast<size_t>(std::max<int64_t>(0, options.vocab_size)),
                ErrorKind::kInvalidArgument, .where = "--vocab-size",
                .what = "a byte-level vocabulary begins with the bytes and the special tokens",
                .got = std::to_string(options.vocab_size), .want = std::to_string(vocabulary.size()) + " or more",
                .fix = "pass a larger one");
  PairCounts pairs;
  for (const auto& [word, count] : counts_) {
    std::vector<uint32_t> tokens;
    for (const char byte : word) tokens.push_back(of_byte[static_cast<unsigned char>(byte)]);
    pairs.add_word(std::move(tokens), static_cast<int64_t>(count));
  }
  pairs.queue_new_pairs();
  std::vector<MergeRule> merges;
  while (static_cast<int64_t>(vocabulary.size()) < options.vocab_size) {
    const std::optional<PairCounts::Best> best = pairs.take_best();
    if (!best || best->count < std::max<int64_t>(1, options.min_frequency)) break;
    const auto [left, right] = best->pair;
    const uint32_t merged = vocabulary.add(vocabulary.name(left) + vocabulary.name(right));
    merges.push_back({left, right, merged});
    pairs.merge(*best, merged);
    pairs.queue_new_pairs();
    if (options.progress) options.progress(static_cast<int64_t>(vocabulary.size()), options.vocab_size);
  }
  spec.vocab = vocabulary.list();
  spec.merges = without_repeats(merges);
  return spec;
}

}  // namespace ranklab
