#include "core/data/inputs/documents.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/inputs/inputs.h"
#include "core/data/inputs/lines.h"

namespace ranklab::inputs {
namespace {

constexpr uint64_t kMostTextBytes = 256 << 20;

struct JsonText {
  std::optional<std::string> text = std::nullopt;  // set if there is no problem
  std::string problem = {}, got = {};
};

using Json = nlohmann::json;

// The parser passes it each part of the line, and stops when it returns false.
class TextOfKey final : public nlohmann::json_sax<Json> {
 public:
  explicit TextOfKey(const std::string& key) : key_(key) {}
  JsonText result() {
    if (found_.problem.empty() && !found_.text) refuse("no key " + quote(key_), "other keys");
    if (!found_.problem.empty()) found_.text.reset();
    return std::move(found_);
  }

  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("a boolean"); }
  bool number_integer(int64_t) override { return other("a number"); }
  bool number_unsigned(uint64_t) override { return other("a number"); }
  bool number_float(double, const std::string&) override { return other("a number"); }
  bool binary(Json::binary_t&) override { return other("binary data"); }
  bool string(std::string& value) override {
    if (!wanted_) return depth_ > 0 || other("a string");
    wanted_ = false;
    if (found_.text) return refuse("the key " + quote(key_) + " appears twice", "two texts");
    found_.text = std::move(value);
    return true;
  }
  bool key(std::string& name) override {
    wanted_ = depth_ == 1 && name == key_;
    return true;
  }
  bool start_object(size_t) override {
    if (wanted_) return other("an object");
    ++depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (wanted_ || depth_ == 0) return other("an array");
    ++depth_;
    return true;
  }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr size_t kShown = 160;
    std::string why = error.what();  // "[...] parse error at line 1, column 9: why"
    if (const size_t column = why.find(", column "); column != std::string::npos)
      if (const size_t colon = why.find(": ", column); colon != std::string::npos) why.erase(0, colon + 2);
    if (why.size() > kShown) why = why.substr(0, kShown) + "...";
    return refuse("invalid JSON", strprintf("at byte %zu ", position) + without_controls(shown_as_utf8(why)));
  }

 private:
  bool other(const char* type) {
    if (depth_ == 0) return refuse("not a JSON object", type);
    return !wanted_ || refuse("the key " + quote(key_) + " is not a string", type);
  }
  bool refuse(std::string problem, std::string got) {
    found_.problem = std::move(problem);
    found_.got = std::move(got);
    return false;
  }
  const std::string& key_;
  JsonText found_;
  int64_t depth_ = 0;
  bool wanted_ = false;  // the next value belongs to the key
};

// The text in a line of JSON: the string under a key of an object, which may be empty. Nothing else in the line is
// kept, and there is no recursion, so a hostile line costs no more than its length. Problems: not a JSON object,
// invalid UTF-8 or escapes, a zero byte, more than one value, and a key that is absent, duplicate or of another type.
JsonText json_text(std::string_view line, const std::string& key) {
  // The parser treats a zero byte as the end of its input, and would ignore what follows.
  if (const size_t at = line.find('\0'); at != std::string_view::npos)
    return {.problem = "invalid JSON", .got = strprintf("a zero byte at byte %zu", at + 1)};
  TextOfKey reader(key);
  Json::sax_parse(line.begin(), line.end(), &reader);
  return reader.result();
}

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
    document.erase(0, byte_order_mark(document));
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
