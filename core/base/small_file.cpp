#include "core/base/small_file.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/base/text.h"

namespace ranklab {

std::string read_small_file(const std::string& path, size_t limit_bytes, ErrorKind kind, const std::string& where,
                            const std::string& fix) {
  const auto refuse = [&](const std::string& what, const std::string& reason) {
    throw Error(kind, {.where = where, .what = what, .got = quote(path) + ": " + reason, .want = {}, .fix = fix});
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) refuse("cannot read the file", std::strerror(errno));
  std::string text;
  std::array<char, 1 << 14> piece;
  while (const size_t size = std::fread(piece.data(), 1, piece.size(), file.get())) {
    text.append(piece.data(), size);
    if (text.size() > limit_bytes) {
      refuse("the file is too large", "over " + human_bytes(static_cast<double>(limit_bytes)));
    }
  }
  if (std::ferror(file.get()) != 0) refuse("cannot read the file", std::strerror(errno));
  return text;
}

}  // namespace ranklab
