// A text file, whose bytes after a byte order mark are one document.
#include <algorithm>
#include <array>
#include <vector>

#include "core/base/utf8.h"
#include "core/data/inputs/inputs.h"

namespace ranklab::inputs {
namespace {

class TextInput final : public TokenInput {
 public:
  TextInput(const std::string& path, std::optional<uint32_t> end_token)
      : file_(path, input_words()), end_token_(end_token) {
    std::array<char, 3> begin{};
    text_begin_ = offset_ = byte_order_mark({begin.data(), file_.read_at(0, begin)});
  }

  size_t read(std::span<uint32_t> out) override {
    size_t count = 0;
    while (count < out.size() && !text_ended_) count += read_text(out.subspan(count));
    if (count < out.size() && end_token_ && offset_ > text_begin_) {
      out[count++] = *end_token_;
      end_token_.reset();
    }
    return count;
  }
  void skip(uint64_t tokens) override { offset_ = text_begin_ + tokens; }

 private:
  size_t read_text(std::span<uint32_t> out) {
    bytes_.resize(std::min(out.size(), kBlockBytes));
    const size_t got = file_.read_at(offset_, bytes_);
    check_no_end(file_.path(), "", {bytes_.data(), got}, offset_, end_token_);
    for (size_t i = 0; i < got; ++i) out[i] = static_cast<unsigned char>(bytes_[i]);
    offset_ += got;
    text_ended_ = got < bytes_.size();
    return got;
  }
  InputFile file_;
  std::optional<uint32_t> end_token_;  // still to come
  std::vector<char> bytes_;
  uint64_t text_begin_ = 0, offset_ = 0;  // in the file
  bool text_ended_ = false;
};

}  // namespace

std::unique_ptr<TokenInput> open_text(const std::string& path, const InputFormat& format) {
  return std::make_unique<TextInput>(path, format.end_token);
}

}  // namespace ranklab::inputs
