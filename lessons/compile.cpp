#include "lessons/compile.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "core/base/error.h"
#include "core/base/shell_quote.h"

namespace ranklab::lesson {
namespace {

bool runs(const std::string& compiler) {
  const std::string command = "command -v " + shell_quote(compiler) + " >/dev/null 2>&1";
  return std::system(command.c_str()) == 0;
}

// Only the first lines, because later errors mostly follow from the first one.
std::string first_lines(const std::string& text, int limit) {
  std::istringstream lines(text);
  std::string out, line;
  for (int i = 0; std::getline(lines, line); ++i) {
    if (i == limit) return out + "...\n";
    out += line + "\n";
  }
  return out;
}

}  // namespace

std::string exercise_compiler() {
  const char* set = std::getenv("CXX");
  if (set != nullptr && *set != '\0') return set;  // not quoted, because it may contain options
  for (const char* name : {RANKLAB_CXX_COMPILER, "c++", "g++", "clang++"}) {
    if (runs(name)) return shell_quote(name);
  }
  throw Error(ErrorKind::kEnvironment, {.where = "lesson check",
                                        .what = "there is no C++ compiler",
                                        .got = "none of $CXX, c++, g++, clang++",
                                        .want = "a compiler with C++20",
                                        .fix = "apt-get install g++, or set CXX"});
}

Compiled compile_exercise(const std::filesystem::path& source, const std::filesystem::path& include_folder,
                          bool color) {
  RANKLAB_CHECK(std::filesystem::is_regular_file(source), ErrorKind::kIo, .where = "lesson check",
                .what = "the exercise is not there", .got = source.string(), .want = "your copy of the exercise",
                .fix = "run `ranklab lesson start`, which copies it and says where");
  Compiled result;
  result.folder = std::make_unique<TemporaryFolder>("ranklab-lesson", "lesson check");
  result.shared_object = result.folder->path() / kExerciseLibrary;
  // Compiles in the file's own folder, so that messages and call sites read "exercise.cpp:41".
  const std::string folder = std::filesystem::absolute(source).parent_path().string();
  const std::string command = "cd " + shell_quote(folder) + " && " + exercise_compiler() + kExerciseFlags +
                              "-shared -Wl,-Bsymbolic -Wl,-z,defs -fdiagnostics-color=" + (color ? "always" : "never") +
                              " -I " + shell_quote(include_folder.string()) + " " +
                              shell_quote(source.filename().string()) + " -o " +
                              shell_quote(result.shared_object.string()) + " 2>&1";
  const auto begin = std::chrono::steady_clock::now();
  FILE* pipe = ::popen(command.c_str(), "r");
  RANKLAB_CHECK(pipe != nullptr, ErrorKind::kEnvironment, .where = "lesson check", .what = "no process can be started",
                .got = command, .fix = "raise the limit of processes (ulimit -u)");
  std::array<char, 4096> buffer;
  std::string output;
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  result.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.messages = first_lines(output, 40);
  return result;
}

}  // namespace ranklab::lesson
