// Files of 16-bit tokens, little-endian: those of llm.c's and modded-nanogpt's FineWeb scripts, which begin with 256
// int32 (magic, version, number of tokens, zeros), and nanoGPT's train.bin and val.bin, which contain only tokens.
#include <algorithm>
#include <array>
#include <vector>

#include "core/data/inputs/inputs.h"

namespace ranklab::inputs {
namespace {

constexpr int32_t kFinewebMagic = 20240520, kFinewebVersion = 1;
constexpr uint64_t kFinewebHeaderBytes = 256 * sizeof(int32_t);
using FinewebHead = std::array<int32_t, 3>;  // magic, version, tokens

// Filled up with zeros if the file is shorter.
FinewebHead head_of(const InputFile& file) {
  FinewebHead head = {};
  file.read_at(0, {reinterpret_cast<char*>(head.data()), sizeof head});
  return head;
}

class TokenFileInput final : public TokenInput {
 public:
  // The tokens begin at `begin`.
  TokenFileInput(std::unique_ptr<InputFile> file, uint64_t begin)
      : file_(std::move(file)), offset_(begin), end_(file_->size_bytes()) {}

  size_t read(std::span<uint32_t> out) override {
    const size_t count = std::min<uint64_t>({out.size(), (end_ - offset_) / sizeof(uint16_t), kBlockBytes});
    tokens_.resize(count);
    const std::span<char> bytes(reinterpret_cast<char*>(tokens_.data()), count * sizeof(uint16_t));
    if (file_->read_at(offset_, bytes) < bytes.size())
      refuse_input(file_->path(), "", "the file became shorter while it was read", "fewer bytes",
                   std::to_string(end_) + " bytes", "run ranklab data prepare again");
    std::copy(tokens_.begin(), tokens_.end(), out.begin());
    offset_ += bytes.size();
    return count;
  }
  void skip(uint64_t tokens) override { offset_ += tokens * sizeof(uint16_t); }

 private:
  std::unique_ptr<InputFile> file_;
  uint64_t offset_, end_;
  std::vector<uint16_t> tokens_;
};

}  // namespace

std::unique_ptr<TokenInput> open_fineweb(const std::string& path, const InputFormat&) {
  auto file = std::make_unique<InputFile>(path, input_words());
  const auto [magic, version, tokens] = head_of(*file);
  const auto refuse = [&path](const char* what, const std::string& got, const std::string& want, const char* fix) {
    refuse_input(path, "", what, got, want, fix);
  };
  const uint64_t bytes = file->size_bytes();
  if (bytes < kFinewebHeaderBytes)
    refuse("the header is cut off", std::to_string(bytes) + " bytes", "at least " + std::to_string(kFinewebHeaderBytes),
           "download or write the file again; a file without a header is --from nanogpt");
  if (magic != kFinewebMagic)
    refuse("its first number is not that of a token file", std::to_string(magic), std::to_string(kFinewebMagic),
           "pass a file that a FineWeb script wrote; a file without a header is --from nanogpt");
  if (version != kFinewebVersion)
    refuse("unknown version", std::to_string(version), std::to_string(kFinewebVersion),
           "write the file with 16-bit tokens, version 1");
  if (tokens < 0)
    refuse("impossible number of tokens in the header", std::to_string(tokens), "0 or more", "write the file again");
  const uint64_t want = kFinewebHeaderBytes + static_cast<uint64_t>(tokens) * sizeof(uint16_t);
  if (bytes != want)
    refuse(bytes < want ? "the file is cut off" : "the file is too long", std::to_string(bytes) + " bytes",
           std::to_string(want) + " bytes for the " + std::to_string(tokens) + " tokens of its header",
           "download or write the file again");
  return std::make_unique<TokenFileInput>(std::move(file), kFinewebHeaderBytes);
}

std::unique_ptr<TokenInput> open_nanogpt(const std::string& path, const InputFormat&) {
  auto file = std::make_unique<InputFile>(path, input_words());
  if (head_of(*file)[0] == kFinewebMagic)  // read as tokens, this header would not be text in GPT-2's vocabulary
    refuse_input(path, "", "the file begins with a header", "magic " + std::to_string(kFinewebMagic), "tokens alone",
                 "pass --from fineweb");
  if (file->size_bytes() % sizeof(uint16_t) != 0)
    refuse_input(path, "", "half a token at the end", std::to_string(file->size_bytes()) + " bytes",
                 "an even number: 2 bytes per token",
                 "copy or write the file again; make shards of text without --from");
  return std::make_unique<TokenFileInput>(std::move(file), 0);
}

}  // namespace ranklab::inputs
