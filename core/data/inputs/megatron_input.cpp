// Megatron-LM's indexed datasets (megatron/core/datasets/indexed_dataset.py): PREFIX.bin contains the tokens of all
// sequences one after another; PREFIX.idx contains their type, the length and beginning of each sequence, and where
// documents end. Little-endian. The index is checked against the size of the tokens before any are read. If Megatron's
// preprocess_data.py ran with --append-eod, the tokens already include the ends of documents.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "core/data/inputs/inputs.h"
#include "core/data/megatron_format.h"

namespace ranklab::inputs {
namespace {

[[noreturn]] void damaged(const std::string& path, std::string what, std::string got, std::string want) {
  refuse_input(path, "", std::move(what), std::move(got), std::move(want),
               "copy or write both files again; PREFIX.bin and PREFIX.idx belong together");
}

// Reads numbers of a file in blocks, because an index may be larger than memory.
template <typename T>
class Numbers {
 public:
  Numbers(const InputFile& file, uint64_t offset) : file_(file), offset_(offset) {}
  T next() {
    if (at_ == block_.size()) fill();
    return block_[at_++];
  }

 private:
  void fill() {
    block_.resize(kBlockBytes / sizeof(T));
    const size_t got = file_.read_at(offset_, {reinterpret_cast<char*>(block_.data()), block_.size() * sizeof(T)});
    block_.resize(got / sizeof(T));
    if (block_.empty())
      damaged(file_.path(), "the file became shorter while it was read", "fewer bytes", "as many as at the start");
    offset_ += got;
    at_ = 0;
  }
  const InputFile& file_;
  uint64_t offset_;
  std::vector<T> block_;
  size_t at_ = 0;
};

megatron::Head read_head(const InputFile& index) {
  megatron::Head head;
  std::array<char, megatron::kHeadBytes> bytes = {};
  const size_t got = index.read_at(0, bytes);
  const bool is_index =
      got >= megatron::kMagic.size() && std::equal(megatron::kMagic.begin(), megatron::kMagic.end(), bytes.begin());
  if (!is_index)
    damaged(index.path(), "the file does not begin as an index of Megatron-LM does", std::to_string(got) + " bytes",
            "MMIDIDX");
  if (got < bytes.size())
    damaged(index.path(), "the header is cut off", std::to_string(got) + " bytes", std::to_string(bytes.size()));
  const char* from = bytes.data() + megatron::kMagic.size();
  const auto take = [&from](auto& number) {
    std::memcpy(&number, from, sizeof number);
    from += sizeof number;
  };
  take(head.version);
  take(head.dtype);
  take(head.sequences);
  take(head.documents);
  return head;
}

// RETURNS: the number of bytes per token.
size_t check_head(const InputFile& index, const megatron::Head& head) {
  if (head.version != 1) damaged(index.path(), "unknown version", std::to_string(head.version), "1");
  const megatron::TokenType* const type = megatron::find_type(head.dtype);
  if (type == nullptr)
    damaged(index.path(), "the type of the elements is not one of tokens", "code " + std::to_string(head.dtype),
            "1 (uint8), 4 (int32), 5 (int64) or 8 (uint16)");
  const uint64_t bytes = index.size_bytes();
  if (head.sequences > bytes || head.documents > bytes)  // ensures that the sum below does not overflow
    damaged(index.path(), "the header names more sequences than the file has", std::to_string(head.sequences),
            "at most what " + std::to_string(bytes) + " bytes hold");
  const uint64_t want = megatron::index_bytes(head.sequences, head.documents);
  if (bytes == want + head.sequences && head.sequences > 0)
    damaged(index.path(), "the sequences have modes, as in multimodal data", "a dataset of pictures and text",
            "text alone");
  if (bytes != want)
    damaged(index.path(), bytes < want ? "the index is cut off" : "the index is too long",
            std::to_string(bytes) + " bytes",
            std::to_string(want) + " bytes for " + std::to_string(head.sequences) + " sequences and " +
                std::to_string(head.documents) + " ends");
  return type->bytes;
}

// Checks that each sequence begins where the previous one ends, and that the last one ends with the file.
void check_sequences(const InputFile& index, const InputFile& tokens, const megatron::Head& head, size_t width) {
  Numbers<int32_t> lengths(index, megatron::kHeadBytes);
  Numbers<int64_t> begins(index, megatron::kHeadBytes + head.sequences * sizeof(int32_t));
  uint64_t at = 0;
  for (uint64_t i = 0; i < head.sequences; ++i) {
    const int32_t length = lengths.next();
    const int64_t begin = begins.next();
    if (length < 0 || begin < 0 || static_cast<uint64_t>(begin) != at)
      damaged(index.path(), "sequence " + std::to_string(i) + " does not follow the one before it",
              std::to_string(length) + " tokens at byte " + std::to_string(begin), "byte " + std::to_string(at));
    at += static_cast<uint64_t>(length) * width;
  }
  if (at != tokens.size_bytes())
    damaged(tokens.path(), at > tokens.size_bytes() ? "the file is cut off" : "the file is too long",
            std::to_string(tokens.size_bytes()) + " bytes", std::to_string(at) + " bytes, as its index says");
}

class MegatronInput final : public TokenInput {
 public:
  MegatronInput(std::unique_ptr<InputFile> file, uint8_t dtype)
      : file_(std::move(file)), dtype_(dtype), width_(megatron::find_type(dtype)->bytes) {}

  size_t read(std::span<uint32_t> out) override {
    const size_t count = std::min<uint64_t>({out.size(), (file_->size_bytes() - offset_) / width_, kBlockBytes});
    bytes_.resize(count * width_);
    if (file_->read_at(offset_, bytes_) < bytes_.size())
      damaged(file_->path(), "the file became shorter while it was read", "fewer bytes",
              std::to_string(file_->size_bytes()) + " bytes");
    for (size_t i = 0; i < count; ++i) {
      const int64_t token = megatron::token_at(bytes_.data() + i * width_, dtype_);
      if (token < 0 || token > std::numeric_limits<int32_t>::max())
        damaged(file_->path(), "no token at byte " + std::to_string(offset_ + i * width_), std::to_string(token),
                "0 to 2147483647");
      out[i] = static_cast<uint32_t>(token);
    }
    offset_ += bytes_.size();
    return count;
  }
  void skip(uint64_t tokens) override { offset_ += tokens * width_; }

 private:
  std::unique_ptr<InputFile> file_;
  uint8_t dtype_;
  size_t width_;
  uint64_t offset_ = 0;
  std::vector<char> bytes_;
};

}  // namespace

std::string megatron_tokens_file(const std::string& path) { return megatron::prefix_of(path) + ".bin"; }

std::unique_ptr<TokenInput> open_megatron(const std::string& path, const InputFormat&) {
  const std::string prefix = megatron::prefix_of(path);
  const InputFile index(prefix + ".idx", input_words());
  auto tokens = std::make_unique<InputFile>(megatron_tokens_file(path), input_words());
  const megatron::Head head = read_head(index);
  check_sequences(index, *tokens, head, check_head(index, head));
  return std::make_unique<MegatronInput>(std::move(tokens), head.dtype);
}

}  // namespace ranklab::inputs
