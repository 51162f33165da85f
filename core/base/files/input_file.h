// All files are read through this class. It opens only regular files: a pipe would wait for a writer that never comes,
// and a device such as /dev/zero has no end. Symbolic links are followed unless the caller forbids it.
// Cost: one fstat() per file. Thread rule: read_some() from one thread, read_at() from any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/error.h"

namespace ranklab {

// The parts of an error text that the caller supplies; InputFile fills in what, got and want. Its kind is always kIo:
// a file that is missing, may not be read, is not a regular file or is too large gives the same exit code whichever
// option named it.
struct InputWords {
  std::string where = {};
  std::string fix = {};
  bool follow_links = true;  // false where the name comes from a file and must not lead out of its folder
  // Also accepts a pipe that somebody else opened, /dev/fd/63 or /dev/stdin: it has a writer, and ends with it.
  bool take_open_pipe = false;
};

class InputFile {
 public:
  InputFile(std::string path, InputWords words);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }  // when it was opened; 0 for the kernel's own files (/proc)
  // RETURNS: bytes read, fewer than requested only at the end of the file. Throws kIo.
  size_t read_some(std::span<char> out);                       // from where the last call ended
  size_t read_at(uint64_t offset, std::span<char> out) const;  // not for a pipe
  int descriptor() const { return fd_; }                       // for a library that reads by itself, or for mmap()

 private:
  [[noreturn]] void refuse_call(const char* verb) const;  // reads errno
  [[noreturn]] void refuse_type(const std::string& got, const std::string& want) const;
  std::string path_;
  InputWords words_;
  uint64_t size_bytes_ = 0, position_ = 0;
  int fd_ = -1;
  bool is_pipe_ = false;
};

// The whole content. Throws kIo also when the file has more than limit_bytes; its reported size is checked
// before anything is read.
std::string read_whole_file(const std::string& path, uint64_t limit_bytes, InputWords words);
// The same for a file that may be missing, such as the kernel's: "" when it cannot be read.
std::string read_file_if_any(const std::string& path, uint64_t limit_bytes = 1 << 20);

// What kind of file a mode (st_mode) is, for a message: "a pipe", "a character device", "a folder".
std::string file_type_name(unsigned mode);

}  // namespace ranklab
