// A text file that grows by whole lines: one that does not fit is taken back, so that a full disk leaves no half
// record, and the next one is tried again. Thread rule: one thread.
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

  // Writes the line and its end. Returns why it could not, "" if it could: the system's words, or that the file is
  // gone.
  std::string add(const std::string& line);

 private:
  int fd_ = -1;
};

}  // namespace ranklab
