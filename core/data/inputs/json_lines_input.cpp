// JSON lines: each line that is not blank is an object with the text of a document.
#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/data/inputs/inputs.h"
#include "core/data/inputs/json_text.h"

namespace ranklab::inputs {
namespace {

constexpr size_t kMostLineBytes = 64 << 20;

class Lines {
 public:
  explicit Lines(const std::string& path) : file_(path, input_words()), block_(kBlockBytes) {}
  // False at the end. Throws kBadFile when the line is too long to be a document.
  bool next(std::string& line) {
    line.clear();
    ++number_;
    for (;;) {
      if (begin_ == end_ && !fill()) return !line.empty();
      const std::string_view rest(block_.data() + begin_, end_ - begin_);
      const size_t stop = rest.find('\n');
      line += rest.substr(0, stop);
      if (line.size() > kMostLineBytes)
        refuse_input(path(), place(), "the line is too long", "more than " + human_bytes(kMostLineBytes),
                     "a document in at most that", "split the document, or pass a text file");
      begin_ += stop == std::string_view::npos ? rest.size() : stop + 1;
      if (stop != std::string_view::npos) return true;
    }
  }
  const std::string& path() const { return file_.path(); }
  std::string place() const { return ", line " + std::to_string(number_); }

 private:
  bool fill() {
    begin_ = 0;
    end_ = file_.read_some(block_);
    return end_ > 0;
  }
  InputFile file_;
  std::vector<char> block_;
  size_t begin_ = 0, end_ = 0;  // what of the block is not yet in a line
  uint64_t number_ = 0;
};

class JsonLinesInput final : public TokenInput {
 public:
  JsonLinesInput(const std::string& path, const InputFormat& format) : lines_(path), format_(format) {}

  size_t read(std::span<uint32_t> out) override {
    size_t count = 0;
    while (count < out.size()) {
      if (at_ == document_.size() && !ends_) {
        if (!next_document()) break;
      }
      const size_t some = std::min(out.size() - count, document_.size() - at_);
      for (size_t i = 0; i < some; ++i) out[count + i] = static_cast<unsigned char>(document_[at_ + i]);
      at_ += some;
      count += some;
      if (ends_ && at_ == document_.size() && count < out.size()) {
        out[count++] = *format_.end_token;
        ends_ = false;
      }
    }
    return count;
  }

 private:
  bool next_document() {
    at_ = 0;
    for (document_.clear(); document_.empty();) {
      if (!lines_.next(line_)) return false;
      if (line_.find_first_not_of(" \t\r") == std::string::npos) continue;
      JsonText found = json_text(line_, format_.json_key);
      if (!found.text)
        refuse_input(lines_.path(), lines_.place(), found.problem, found.got,
                     "an object like {" + quoted(format_.json_key) + ": \"...\"}",
                     "correct the line or take it out; --json-key names the key of the text");
      document_ = std::move(*found.text);
      check_no_end(lines_.path(), lines_.place(), document_, 0, format_.end_token);
    }
    ends_ = format_.end_token.has_value();
    return true;
  }
  static std::string quoted(const std::string& key) { return "\"" + key + "\""; }

  Lines lines_;
  InputFormat format_;
  std::string line_, document_;
  size_t at_ = 0;      // in the document
  bool ends_ = false;  // its end token is still to come
};

}  // namespace

std::unique_ptr<TokenInput> open_json_lines(const std::string& path, const InputFormat& format) {
  return std::make_unique<JsonLinesInput>(path, format);
}

}  // namespace ranklab::inputs
