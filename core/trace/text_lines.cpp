#include "core/trace/text_lines.h"

#include <cstring>

#include "core/base/error.h"

namespace ranklab {

TextLines::TextLines(const std::string& path, size_t most_line_bytes)
    : reader_(path), most_line_bytes_(most_line_bytes), buffer_(size_t{1} << 18) {}

// Appends more bytes to the remaining ones; false when there are none.
bool TextLines::fill() {
  if (!damage_.empty()) return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ > most_line_bytes_) {
    damage_ = "a line has more than " + std::to_string(most_line_bytes_) + " bytes";
    return false;
  }
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  size_t got = 0;
  try {
    got = reader_.read(buffer_.data() + end_, buffer_.size() - end_);
  } catch (const Error& error) {
    damage_ = error.text().what + ": " + error.text().got;
  }
  end_ += got;
  return got > 0;
}

bool TextLines::next(std::string_view& line) {
  line_begin_ = consumed_;
  size_t searched = 0;
  for (;;) {
    const char* const first = buffer_.data() + begin_;
    const void* const found = std::memchr(first + searched, '\n', end_ - begin_ - searched);
    if (found != nullptr) {
      const auto length = static_cast<size_t>(static_cast<const char*>(found) - first);
      line = {first, length};
      begin_ += length + 1;
      consumed_ += static_cast<int64_t>(length) + 1;
      complete_ = true;
      return true;
    }
    searched = end_ - begin_;
    if (!fill()) break;
  }
  complete_ = false;
  line = {buffer_.data() + begin_, end_ - begin_};
  consumed_ += static_cast<int64_t>(end_ - begin_);
  begin_ = end_;
  return !line.empty();
}

}  // namespace ranklab
