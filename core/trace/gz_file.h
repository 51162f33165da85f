// A text file that appears whole or not at all (core/base/files/atomic_file.h). A path ending in ".gz" is compressed
// (zlib). Thread rule: one thread.
#pragma once
#include <string>
#include <string_view>

#include "core/base/files/atomic_file.h"

namespace ranklab {

class GzWriter {
 public:
  explicit GzWriter(std::string path);  // throws kIo
  ~GzWriter();                          // removes the temporary file when commit() was not reached
  GzWriter(const GzWriter&) = delete;
  GzWriter& operator=(const GzWriter&) = delete;

  void write(std::string_view text);  // throws kIo (disk full ...)
  // Makes everything written so far readable in the file, even if nothing follows. Throws kIo.
  void flush();
  void commit();

 private:
  [[noreturn]] void fail(const char* call) const;
  AtomicFile file_;
  void* stream_ = nullptr;  // gzFile, on its own file descriptor
};

// Reads a plain or gzip file in pieces. Throws kIo when it cannot be opened, kBadFile when the compressed data is
// damaged or cut off.
class GzReader {
 public:
  explicit GzReader(std::string path);
  ~GzReader();
  GzReader(const GzReader&) = delete;
  GzReader& operator=(const GzReader&) = delete;

  size_t read(char* buffer, size_t size);  // 0 at the end

 private:
  std::string path_;
  void* file_ = nullptr;
};

}  // namespace ranklab
