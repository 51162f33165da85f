#include "core/data/inputs/lines.h"

#include <string_view>

#include "core/base/text.h"
#include "core/data/inputs/inputs.h"

namespace ranklab::inputs {
namespace {

constexpr size_t kMostLineBytes = 64 << 20;

}  // namespace

Lines::Lines(const std::string& path) : file_(path, input_words()), block_(kBlockBytes) {}

bool Lines::next(std::string& line) {
  line.clear();
  ++number_;
  had_end_ = false;
  for (;;) {
    if (begin_ == end_ && !fill()) return !line.empty();
    const std::string_view rest(block_.data() + begin_, end_ - begin_);
    const size_t stop = rest.find('\n');
    line += rest.substr(0, stop);
    if (line.size() > kMostLineBytes)
      refuse_input(path(), place(), "the line is too long", "more than " + human_bytes(kMostLineBytes),
                   "a document in at most that", "split the document, or pass a text file");
    begin_ += stop == std::string_view::npos ? rest.size() : stop + 1;
    had_end_ = stop != std::string_view::npos;
    if (had_end_) return true;
  }
}

bool Lines::fill() {
  begin_ = 0;
  end_ = file_.read_some(block_);
  return end_ > 0;
}

}  // namespace ranklab::inputs
