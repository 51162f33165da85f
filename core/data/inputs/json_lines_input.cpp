// JSON lines: each line that is not blank is an object containing the text of a document.
#include <algorithm>

#include "core/data/inputs/documents.h"
#include "core/data/inputs/inputs.h"

namespace ranklab::inputs {
namespace {

class JsonLinesInput final : public TokenInput {
 public:
  JsonLinesInput(const std::string& path, const InputFormat& format)
      : path_(path), documents_(open_json_documents(path, format.json_key)), format_(format) {}

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
    if (!documents_->next(document_)) return false;
    check_no_end(path_, documents_->place(), document_, 0, format_.end_token);
    ends_ = format_.end_token.has_value();
    return true;
  }

  std::string path_;
  std::unique_ptr<Documents> documents_;
  InputFormat format_;
  std::string document_;
  size_t at_ = 0;      // position in the document
  bool ends_ = false;  // whether its end token is still to come
};

}  // namespace

std::unique_ptr<TokenInput> open_json_lines(const std::string& path, const InputFormat& format) {
  return std::make_unique<JsonLinesInput>(path, format);
}

}  // namespace ranklab::inputs
