// Learns a byte-level BPE from texts (Sennrich et al. 2016, arXiv 1508.07909): the most frequent pair of neighbouring
// tokens in all words becomes a token, until the vocabulary is full. Ties go to the pair with the smaller numbers, so
// the same texts give the same file; it equals the file of Hugging Face's BpeTrainer: the special tokens first, then
// the 256 bytes in the order of their spelling, then the results of merges. Cost: memory for the distinct words, and
// for each merge a visit of the words that contain its pair. Thread rule: one thread.
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
  int64_t min_frequency = 2;                                       // pairs that are rarer are not merged
  std::vector<std::string> special = {};                           // tokens that no text produces
  std::function<void(int64_t done, int64_t total)> progress = {};  // numbers of tokens
};

class BpeTrainer {
 public:
  // `style`: everything except vocabulary, merges and added tokens (tokenizer_styles.h).
  explicit BpeTrainer(TokenizerSpec style);
  // Adds a text; words do not extend beyond it. Throws kInvalidArgument when it is not UTF-8.
  void add(std::string_view text);
  size_t words() const { return counts_.size(); }
  // A complete tokenizer; it has fewer tokens if the texts have no more pairs. Throws kInvalidArgument when vocab_size
  // leaves no room for the bytes.
  TokenizerSpec train(const BpeTraining& options) const;

 private:
  TokenizerSpec style_;
  PreTokenizer pre_tokenizer_;
  std::unordered_map<std::string, uint64_t> counts_;
};

}  // namespace ranklab
