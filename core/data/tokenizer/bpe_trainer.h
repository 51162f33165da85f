// Learns a byte-level BPE from texts (Sennrich et al. 2016, arXiv 1508.07909): of the pairs of neighbouring tokens in
// all words the most frequent becomes a token, until the vocabulary is full. Ties go to the pair with the smaller
// numbers, so the same texts give the same file, and it is the one that Hugging Face's BpeTrainer gives: the special
// tokens first, then the 256 bytes in the order of their spelling, then what the merges make. Cost: memory for the
// different words, and for each merge a look at the words that have its pair. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/tokenizer/pre_tokenize.h"
#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

struct BpeTraining {
  int64_t vocab_size = 32768;
  int64_t min_frequency = 2;                                       // a rarer pair is not merged
  std::vector<std::string> special = {};                           // tokens that no text gives
  std::function<void(int64_t done, int64_t total)> progress = {};  // tokens
};

class BpeTrainer {
 public:
  // `style`: all but vocabulary, merges and added tokens (tokenizer_styles.h).
  explicit BpeTrainer(TokenizerSpec style);
  // Words do not go beyond a text. Throws kInvalidArgument when it is no UTF-8.
  void add(std::string_view text);
  size_t words() const { return counts_.size(); }
  // A complete tokenizer, with fewer tokens where the texts have no more pairs. Throws kInvalidArgument when there is
  // no room for the bytes.
  TokenizerSpec train(const BpeTraining& options) const;

 private:
  TokenizerSpec style_;
  PreTokenizer pre_tokenizer_;
  std::unordered_map<std::string, uint64_t> counts_;
};

}  // namespace ranklab
