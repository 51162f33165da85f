#include "lessons/exercise_library.h"

#include <dlfcn.h>

namespace ranklab::lesson {

ExerciseLibrary::ExerciseLibrary(const std::filesystem::path& shared_object)
    : handle_(::dlopen(shared_object.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* why = ::dlerror();
  throw Error(ErrorKind::kCheckFailed, {.where = "exercise",
                                        .what = "the compiled exercise does not load",
                                        .got = why != nullptr ? why : shared_object.string(),
                                        .fix = "call only functions that your file, its headers or the C++ library "
                                               "define"});
}

bool ExerciseLibrary::has(const std::string& name) const { return ::dlsym(handle_, name.c_str()) != nullptr; }

void* ExerciseLibrary::symbol(const std::string& name) const {
  void* address = ::dlsym(handle_, name.c_str());
  RANKLAB_CHECK(address != nullptr, ErrorKind::kCheckFailed, .where = "exercise",
                .what = "the exercise does not define a function the check calls", .got = "no `" + name + "`",
                .want = "the function exactly as exercise.h declares it",
                .fix = "keep its name and parameters, or start over with `ranklab lesson reset`");
  return address;
}

}  // namespace ranklab::lesson
