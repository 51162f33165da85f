#include "core/base/files/temporary_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {

TemporaryFolder::TemporaryFolder(const std::string& name, const char* where) : owner_(::getpid()) {
  std::error_code none;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(none);
  std::random_device random;
  int made = 0;
  do {
    path_ = parent / strprintf("%s-%08x%08x", name.c_str(), random(), random());
    unfinished_.emplace(path_.string());  // before it exists, since a signal may come as soon as it does
    made = none ? -1 : ::mkdir(path_.c_str(), S_IRWXU);
  } while (made != 0 && !none && errno == EEXIST);
  RANKLAB_CHECK(made == 0, ErrorKind::kIo, .where = where, .what = "cannot create a temporary folder",
                .got = path_.string(), .fix = "set TMPDIR to a writable folder");
}

TemporaryFolder::~TemporaryFolder() {
  if (::getpid() != owner_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ranklab
