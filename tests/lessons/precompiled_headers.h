// While an object lives, exercises are compiled with the standard library's headers precompiled: parsing them is most
// of the cost of a compilation, and a hundred changed answers are compiled. Not for files that learners are given,
// which must include what they use. A compiler that does not accept the precompiled header reads the header itself.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/files/temporary_folder.h"
#include "core/base/shell_quote.h"
#include "lessons/compile.h"

namespace ranklab::lesson {

class PrecompiledHeaders {
 public:
  PrecompiledHeaders() {
    static const HeaderFile file;
    if (const char* set = std::getenv("CXX")) before_ = set;
    ::setenv("CXX", (exercise_compiler() + " -include " + shell_quote(file.path().string())).c_str(), 1);
  }
  ~PrecompiledHeaders() { before_.empty() ? ::unsetenv("CXX") : ::setenv("CXX", before_.c_str(), 1); }
  PrecompiledHeaders(const PrecompiledHeaders&) = delete;
  PrecompiledHeaders& operator=(const PrecompiledHeaders&) = delete;

 private:
  // Precompiled by the compiler of the first exercise.
  class HeaderFile {
   public:
    HeaderFile() {
      std::ofstream header(path());
      for (const char* name :
           {"algorithm", "array", "cmath", "limits", "numeric", "source_location", "span", "stdexcept", "vector"})
        header << "#include <" << name << ">\n";
      header.close();
      const std::string quoted = shell_quote(path().string());
      const std::string command =
          exercise_compiler() + kExerciseFlags + "-x c++-header " + quoted + " -o " + quoted + ".gch 2>/dev/null";
      [[maybe_unused]] const int status = std::system(command.c_str());
    }
    std::filesystem::path path() const { return folder_.path() / "headers.h"; }

   private:
    TemporaryFolder folder_{"ranklab-headers", "lesson tests"};
  };
  std::string before_;
};

}  // namespace ranklab::lesson
