// Reads a file line by line, in bounded memory. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/files/input_file.h"

namespace ranklab::inputs {

class Lines {
 public:
  explicit Lines(const std::string& path);
  // The next line, without its end. False at the end of the file. Throws kBadFile when the line is too long to be a
  // document.
  bool next(std::string& line);
  bool had_end() const { return had_end_; }  // false for a last line that is not terminated
  const std::string& path() const { return file_.path(); }
  std::string place() const { return ", line " + std::to_string(number_); }

 private:
  bool fill();
  InputFile file_;
  std::vector<char> block_;
  size_t begin_ = 0, end_ = 0;  // the part of the block that has not been returned yet
  uint64_t number_ = 0;
  bool had_end_ = false;
};

}  // namespace ranklab::inputs
