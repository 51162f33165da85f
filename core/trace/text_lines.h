// Reads a plain or gzip file line by line, without holding the whole file in memory. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/trace/gz_file.h"

namespace ranklab {

class TextLines {
 public:
  // Throws kIo when the file cannot be opened. A line longer than `most_line_bytes` counts as damage.
  explicit TextLines(const std::string& path, size_t most_line_bytes = SIZE_MAX);

  // Returns the next line without its newline; false at the end of the file. Valid until the next call. A damaged gzip
  // file ends at the damage, which damage() reports.
  bool next(std::string_view& line);
  bool ended() const { return complete_; }            // whether the last line from next() ended in a newline
  int64_t line_begin() const { return line_begin_; }  // its position in bytes of the unpacked text
  const std::string& damage() const { return damage_; }

 private:
  bool fill();

  GzReader reader_;
  size_t most_line_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // start of the bytes not yet returned
  size_t end_ = 0;
  int64_t consumed_ = 0;  // bytes before begin_
  int64_t line_begin_ = 0;
  bool complete_ = true;
  std::string damage_;
};

}  // namespace ranklab
