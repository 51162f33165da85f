#include "core/base/files/temporary_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "core/base/error.h"

namespace ranklab {
namespace {

std::string new_folder(const std::string& name, const char* where) {
  std::error_code none;
  std::string pattern = (std::filesystem::temp_directory_path(none) / (name + "-XXXXXX")).string();
  RANKLAB_CHECK(!none && ::mkdtemp(pattern.data()) != nullptr, ErrorKind::kIo, .where = where,
                .what = "cannot create a temporary folder", .got = pattern, .fix = "set TMPDIR to a writable folder");
  return pattern;
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string& name, const char* where)
    : owner_(::getpid()), path_(new_folder(name, where)), unfinished_(path_.string()) {}

TemporaryFolder::~TemporaryFolder() {
  if (::getpid() != owner_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ranklab
