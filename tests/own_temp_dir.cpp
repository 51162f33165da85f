// testing::TempDir() of each test process is a folder of its own, so that two runs of a test at one time (of two
// checkouts on a machine, or of two rows of ctest) share no file, whatever they call theirs. Linked into every test
// program.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace ranklab {
namespace {

// Made before main(): tests that are objects with a folder ask for it then.
class OwnTempDir {
 public:
  OwnTempDir() {
    std::string path = testing::TempDir() + "ranklab_test_XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return;
    ::chmod(path.c_str(), 0755);  // some tests become another user
    ::setenv("TEST_TMPDIR", path.c_str(), 1);
    path_ = path;
  }
  ~OwnTempDir() {
    if (path_.empty() || ::getpid() != owner_) return;  // a copy of the process that ends
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnTempDir(const OwnTempDir&) = delete;
  OwnTempDir& operator=(const OwnTempDir&) = delete;

 private:
  std::string path_;
  pid_t owner_ = ::getpid();
};

const OwnTempDir kOwnTempDir;

}  // namespace
}  // namespace ranklab
