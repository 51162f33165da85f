// The documents of a text input, one after another: a text file is one document, and in a file of JSON lines each line
// is one. Cost: one document in memory. Thread rule: one thread.
#pragma once
#include <memory>
#include <string>

namespace ranklab::inputs {

class Documents {
 public:
  virtual ~Documents() = default;
  // The next document that is not empty; false when there are no more. Throws kBadFile naming the file and the place in
  // it.
  virtual bool next(std::string& document) = 0;
  virtual std::string place() const { return ""; }  // place of the last one in the file, for messages
};

// `json_key`: the key of the text in a line of a .jsonl file.
std::unique_ptr<Documents> open_json_documents(const std::string& path, const std::string& json_key);
std::unique_ptr<Documents> open_text_document(const std::string& path);
std::unique_ptr<Documents> open_documents(const std::string& path, const std::string& json_key);

}  // namespace ranklab::inputs
