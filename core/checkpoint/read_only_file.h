// A file of which parts are read by offset. It must be a regular file and no symbolic link, so that a name inside a
// checkpoint cannot lead out of it, and a pipe or device cannot hold the program up. It is read, not mapped: a file
// that is cut off meanwhile ends in an error, not in SIGBUS. Thread rule: const calls from any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/input_file.h"

namespace ranklab {

class ReadOnlyFile {
 public:
  explicit ReadOnlyFile(std::string path);  // throws kIo, or kBadFile when it is no regular file

  const std::string& path() const { return file_.path(); }
  uint64_t size_bytes() const { return file_.size_bytes(); }  // when it was opened
  // Fills `out`. Throws kIo, or kBadFile when the file ends before.
  void read(uint64_t offset, std::span<std::byte> out) const;

 private:
  InputFile file_;
};

// kBadFile about a file of a checkpoint, with the path in front of `what`.
[[noreturn]] void refuse_checkpoint_file(const std::string& path, const std::string& what, const std::string& got,
                                         const std::string& want);
// Text from a file that nobody checked, for a message: ASCII alone, other bytes as '?', and not longer than that.
std::string printable(std::string_view text, size_t limit = 100);

}  // namespace ranklab
