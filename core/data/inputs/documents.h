// The documents of an input of text, one after another: a text file is one, of JSON lines each line. Cost: a document
// in memory. Thread rule: one thread.
#pragma once
#include <memory>
#include <string>

namespace ranklab::inputs {

class Documents {
 public:
  virtual ~Documents() = default;
  // The next that is not empty; false when there is none. Throws kBadFile naming the file and the place in it.
  virtual bool next(std::string& document) = 0;
  virtual std::string place() const { return ""; }  // of the last one in the file, for messages
};

// `json_key`: of the text in a line of a .jsonl file.
std::unique_ptr<Documents> open_json_documents(const std::string& path, const std::string& json_key);
std::unique_ptr<Documents> open_text_document(const std::string& path);
std::unique_ptr<Documents> open_documents(const std::string& path, const std::string& json_key);

}  // namespace ranklab::inputs
