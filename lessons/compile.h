// Compiles the learner's file with the system's C++ compiler to a shared object. This takes about a second, since
// lesson_api.h includes next to nothing. Thread rule: any thread; each result has its own folder, which it removes.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "core/base/files/temporary_folder.h"

namespace ranklab::lesson {

struct Compiled {
  bool ok = false;
  double seconds = 0;
  std::string messages = {};                 // from the compiler, with the learner's file:line
  std::filesystem::path shared_object = {};  // exists when ok
  std::unique_ptr<TemporaryFolder> folder = {};
};

// The command that a shell runs: $CXX, which may contain options, else the compiler of the build, else c++, g++ or
// clang++. Throws kEnvironment if there is none.
std::string exercise_compiler();
inline constexpr const char* kExerciseLibrary = "exercise.so";
// With assertions, an index past the end is reported instead of reading some other number.
inline constexpr const char* kExerciseFlags = " -std=c++20 -O1 -g1 -Wall -fPIC -D_GLIBCXX_ASSERTIONS ";

// include_folder: the lesson's folder, which contains exercise.h. Throws kIo if the file cannot be read.
Compiled compile_exercise(const std::filesystem::path& source, const std::filesystem::path& include_folder, bool color);

}  // namespace ranklab::lesson
