// A sequence of tokens, cut into samples of S + 1 tokens (inputs and next-token targets overlap by S). The
// byte-level tokenizer needs no vocabulary file: a token is a byte, vocabulary 256. Thread rule: immutable, shared by
// all ranks.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/token_sequence.h"

namespace ranklab {

class ByteTokenizer {
 public:
  static constexpr int64_t kVocabSize = 256;
  static std::vector<int64_t> encode(std::string_view text);
  // Refuses values outside 0-255; control bytes are printed unchanged.
  static std::string decode(std::span<const int64_t> tokens);
};

enum class Split { kTrain, kValidation };

class TokenDataset {
 public:
  // The last `validation_fraction` of the samples is the validation split (at least one sample when the fraction is
  // positive). Throws kInvalidArgument when the text is shorter than one sample per non-empty split.
  TokenDataset(std::shared_ptr<const TokenSequence> tokens, int64_t seq_length, double validation_fraction);
  TokenDataset(std::string text, int64_t seq_length, double validation_fraction);

  int64_t seq_length() const { return seq_length_; }
  int64_t samples(Split split) const { return split == Split::kTrain ? train_samples_ : validation_samples_; }
  // Where sample `index` of the split begins, as an offset in tokens of the whole sequence.
  int64_t begin_of(Split split, int64_t index) const;
  // Writes sample `index` of the split: S inputs and S targets.
  void read(Split split, int64_t index, std::span<int64_t> tokens, std::span<int64_t> targets) const;

 private:
  std::shared_ptr<const TokenSequence> sequence_;
  int64_t seq_length_;
  int64_t train_samples_ = 0;
  int64_t validation_samples_ = 0;
};

}  // namespace ranklab
