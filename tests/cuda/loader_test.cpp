#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/no_cuda.h"

namespace ranklab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ModulePath {
 public:
  explicit ModulePath(const std::string& path) {
    if (const char* before = std::getenv("RANKLAB_CUDA_MODULE")) before_ = before;
    setenv("RANKLAB_CUDA_MODULE", path.c_str(), 1);
  }
  ~ModulePath() { setenv("RANKLAB_CUDA_MODULE", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST(CudaLoader, WithoutTheModuleItSaysWhereItLookedAndWhatToDo) {
  const ModulePath nowhere("/nowhere/libranklab_cuda.so");
  std::string why_not;
  EXPECT_FALSE(cuda_backend_available(&why_not));
  EXPECT_THAT(why_not, AllOf(HasSubstr("nothing at /nowhere/libranklab_cuda.so"), HasSubstr("cmake --preset cuda"),
                             HasSubstr("--backend cpu_sim")));
  EXPECT_FALSE(cuda_backend_available(nullptr));
  try {
    make_cuda_world({});
    FAIL() << "a world without a module";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_EQ(exit_code(error.kind()), 3);
  }
}

TEST(CudaLoader, AFileThatIsNoModuleIsNamed) {
  const std::string path = ::testing::TempDir() + "not_a_module.so";
  std::ofstream(path) << "text";
  const ModulePath broken(path);
  std::string why_not;
  EXPECT_FALSE(cuda_backend_available(&why_not));
  EXPECT_THAT(why_not, AllOf(HasSubstr("cannot be loaded"), HasSubstr("not_a_module.so")));
  std::filesystem::remove(path);
}

TEST(CudaLoader, ALibraryWithoutTheFunctionsIsOfAnotherBuild) {
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::getenv), &libc), 0);
  const ModulePath other(std::filesystem::canonical(libc.dli_fname).string());
  std::string why_not;
  EXPECT_FALSE(cuda_backend_available(&why_not));
  EXPECT_THAT(why_not, HasSubstr("another build"));
}

// The module of a CUDA build: it opens and finds no GPU, or it cannot open for want of a library, or it works.
TEST(CudaLoader, TheBuiltModuleOpensOrSaysWhatIsMissing) {
  const char* module = std::getenv("RANKLAB_CUDA_MODULE");
  if (module == nullptr || *module == '\0') GTEST_SKIP() << "built without RANKLAB_WITH_CUDA";
  std::string why_not;
  if (cuda_backend_available(&why_not)) return;
  EXPECT_THAT(why_not, ::testing::AnyOf(HasSubstr("no GPU can be used"), HasSubstr("cannot be loaded")));
}

TEST(CudaLoader, EveryAbsenceSaysWhatWasFoundWantedAndWhatToDo) {
  for (const CudaAbsence absence :
       {CudaAbsence::kNoModule, CudaAbsence::kNotLoaded, CudaAbsence::kNoDevice, CudaAbsence::kOtherBuild}) {
    const Error error = no_cuda_error(absence, "the detail");
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("[cuda backend]"), HasSubstr("got the detail"), HasSubstr("want "), HasSubstr("do: ")));
  }
}

}  // namespace
}  // namespace ranklab
