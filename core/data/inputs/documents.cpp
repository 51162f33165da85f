#include "core/data/inputs/documents.h"

#include <utility>

#include "core/base/blank.h"
#include "core/base/text.h"
#include "core/data/inputs/inputs.h"
#include "core/data/inputs/json_text.h"
#include "core/data/inputs/lines.h"

namespace ranklab::inputs {
namespace {

constexpr uint64_t kMostTextBytes = 256 << 20;

class JsonDocuments final : public Documents {
 public:
  JsonDocuments(const std::string& path, const std::string& json_key) : lines_(path), json_key_(json_key) {}

  bool next(std::string& document) override {
    for (document.clear(); document.empty();) {
      if (!lines_.next(line_)) return false;
      if (is_blank(line_)) continue;
      JsonText found = json_text(line_, json_key_);
      if (!found.text)
        refuse_input(lines_.path(), lines_.place(), found.problem, found.got,
                     "an object like {\"" + json_key_ + "\": \"...\"}",
                     "correct or remove the line; --json-key names the key of the text");
      document = std::move(*found.text);
    }
    return true;
  }
  std::string place() const override { return lines_.place(); }

 private:
  Lines lines_;
  std::string json_key_, line_;
};

class TextDocument final : public Documents {
 public:
  explicit TextDocument(const std::string& path) : path_(path) {}
  bool next(std::string& document) override {
    if (read_) return false;
    read_ = true;
    InputWords words = input_words();
    words.fix = "split the text, or make it JSON lines with a document in each";
    document = read_whole_file(path_, kMostTextBytes, words);
    return !document.empty();
  }

 private:
  std::string path_;
  bool read_ = false;
};

}  // namespace

std::unique_ptr<Documents> open_json_documents(const std::string& path, const std::string& json_key) {
  return std::make_unique<JsonDocuments>(path, json_key);
}

std::unique_ptr<Documents> open_text_document(const std::string& path) { return std::make_unique<TextDocument>(path); }

std::unique_ptr<Documents> open_documents(const std::string& path, const std::string& json_key) {
  return is_json_lines(path) ? open_json_documents(path, json_key) : open_text_document(path);
}

}  // namespace ranklab::inputs
