// The source of samples: tokens by position, wherever they are stored (text in memory, shards on disk). Thread rule:
// immutable, shared by all ranks.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace ranklab {

class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  virtual int64_t size() const = 0;
  // Tokens [begin, begin + out.size()). REQUIRES: they exist.
  virtual void read(int64_t begin, std::span<int64_t> out) const = 0;
};

// Each token is a byte of the text.
class TextTokens : public TokenSequence {
 public:
  explicit TextTokens(std::string text) : text_(std::move(text)) {}
  int64_t size() const override { return static_cast<int64_t>(text_.size()); }
  void read(int64_t begin, std::span<int64_t> out) const override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<unsigned char>(text_[static_cast<size_t>(begin) + i]);
  }

 private:
  std::string text_;
};

}  // namespace ranklab
