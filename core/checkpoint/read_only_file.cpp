#include "core/checkpoint/read_only_file.h"

#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
void refuse_checkpoint_file(const std::string& path, const std::string& what, const std::string& got,
                            const std::string& want) {
  throw Error(ErrorKind::kBadFile, {.where = "checkpoint",
                                    .what = quote(path) + ": " + what,
                                    .got = got,
                                    .want = want,
                                    .fix = "use another copy of the file, or an earlier checkpoint"});
}

std::string printable(std::string_view text, size_t limit) {
  std::string out(text.substr(0, limit));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > limit ? out + "..." : out;
}

ReadOnlyFile::ReadOnlyFile(std::string path)
    : file_(std::move(path),
            {.where = "checkpoint", .fix = "check the path and its permissions", .follow_links = false}) {}

void ReadOnlyFile::read(uint64_t offset, std::span<std::byte> out) const {
  const size_t got = file_.read_at(offset, {reinterpret_cast<char*>(out.data()), out.size()});
  if (got < out.size())
    refuse_checkpoint_file(path(), "the file became shorter while it was read", std::to_string(offset + got) + " bytes",
                           std::to_string(size_bytes()) + " bytes");
}

}  // namespace ranklab
