// A text file that grows by whole lines: a line that cannot be written completely is rolled back, so a full disk leaves
// no half record, and the next line is tried again. Thread rule: one thread.
#pragma once
#include <string>

namespace ranklab {

class LineFile {
 public:
  enum class Begin { kEmpty, kAtEnd };
  LineFile() = default;
  LineFile(const std::string& path, Begin begin);  // throws kIo
  ~LineFile();
  LineFile(LineFile&& other) noexcept;
  LineFile& operator=(LineFile&& other) noexcept;

  // Writes the line and a newline. RETURNS: "", or why it failed: the system's message, or that the file is gone.
  std::string add(const std::string& line);

 private:
  int fd_ = -1;
};

}  // namespace ranklab
