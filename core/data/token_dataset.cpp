#include "core/data/token_dataset.h"

#include <algorithm>
#include <cmath>

#include "core/base/counted.h"
#include "core/base/error.h"

namespace ranklab {

std::vector<int64_t> ByteTokenizer::encode(std::string_view text) {
  std::vector<int64_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string ByteTokenizer::decode(std::span<const int64_t> tokens) {
  std::string text;
  text.reserve(tokens.size());
  for (const int64_t token : tokens) {
    RANKLAB_CHECK(token >= 0 && token < kVocabSize, ErrorKind::kInvalidArgument, .where = "byte tokenizer",
                  .what = "token out of range", .got = std::to_string(token), .want = "0 to 255");
    text += static_cast<char>(static_cast<unsigned char>(token));
  }
  return text;
}

TokenDataset::TokenDataset(std::string text, int64_t seq_length, double validation_fraction)
    : TokenDataset(std::make_shared<TextTokens>(std::move(text)), seq_length, validation_fraction) {}

TokenDataset::TokenDataset(std::shared_ptr<const TokenSequence> tokens, int64_t seq_length, double validation_fraction)
    : sequence_(std::move(tokens)), seq_length_(seq_length) {
  RANKLAB_CHECK(seq_length > 0, ErrorKind::kInvalidArgument, .where = "data", .what = "--seq-length must be positive",
                .got = std::to_string(seq_length), .fix = "leave it out for the preset's");
  RANKLAB_CHECK(validation_fraction >= 0 && validation_fraction < 1, ErrorKind::kInvalidArgument, .where = "data",
                .what = "--validation-fraction is out of range", .got = std::to_string(validation_fraction),
                .want = "0 <= fraction < 1", .fix = "use 0 for no validation");
  const int64_t total = (sequence_->size() - 1) / seq_length_;
  if (validation_fraction > 0) {
    validation_samples_ =
        std::max<int64_t>(1, static_cast<int64_t>(std::floor(static_cast<double>(total) * validation_fraction)));
  }
  train_samples_ = total - validation_samples_;
  RANKLAB_CHECK(train_samples_ > 0, ErrorKind::kInvalidArgument, .where = "data",
                .what = validation_samples_ > 0
                            ? "the text is too short for a sample to train on and one to validate with"
                            : "the text is too short for one sample",
                .got = counted(sequence_->size(), "token"),
                .want = "at least " + std::to_string((validation_samples_ + 1) * seq_length_ + 1) + " (seq-length " +
                        std::to_string(seq_length_) + ")",
                .fix = std::string("use a longer text or a smaller --seq-length") +
                       (total > 0 ? ", or keep nothing for validation (--validation-fraction 0)" : ""));
}

int64_t TokenDataset::begin_of(Split split, int64_t index) const {
  return (split == Split::kTrain ? index : train_samples_ + index) * seq_length_;
}

void TokenDataset::read(Split split, int64_t index, std::span<int64_t> tokens, std::span<int64_t> targets) const {
  RANKLAB_CHECK(index >= 0 && index < samples(split), ErrorKind::kInternal, .where = "data",
                .what = "sample out of range", .got = std::to_string(index),
                .want = "below " + std::to_string(samples(split)));
  const int64_t begin = begin_of(split, index);
  const auto length = static_cast<size_t>(seq_length_);
  sequence_->read(begin, tokens.first(length));
  std::copy_n(tokens.begin() + 1, length - 1, targets.begin());
  sequence_->read(begin + seq_length_, targets.subspan(length - 1, 1));
}

}  // namespace ranklab
