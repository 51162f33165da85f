#include "core/data/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "core/base/byte_alphabet.h"
#include "core/base/error.h"
#include "core/data/tokenizer/normalize.h"
#include "core/data/tokenizer/pair_counts.h"

namespace ranklab {
namespace {

constexpr size_t kBytes = 256;

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
