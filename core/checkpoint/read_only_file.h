// A file that is read at offsets. It must be a regular file and not a symbolic link, so that a name inside a checkpoint
// cannot lead out of it, and a pipe or device cannot block the program. It is read instead of mapped, so that
// truncating it meanwhile causes an error and not SIGBUS. Thread rule: const calls from any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/files/input_file.h"

namespace ranklab {

class ReadOnlyFile {
 public:
  explicit ReadOnlyFile(std::string path);  // throws kIo

  const std::string& path() const { return file_.path(); }
  uint64_t size_bytes() const { return file_.size_bytes(); }  // when it was opened
  // Fills `out`. Throws kIo, or kBadFile when the file ends too early.
  void read(uint64_t offset, std::span<std::byte> out) const;

 private:
  InputFile file_;
};

// Throws kBadFile about a file of a checkpoint; `what` is preceded by the path.
[[noreturn]] void refuse_checkpoint_file(const std::string& path, const std::string& what, const std::string& got,
                                         const std::string& want);
// Untrusted text made safe for a message: ASCII only, other bytes as '?', at most `limit` characters.
std::string printable(std::string_view text, size_t limit = 100);

}  // namespace ranklab
