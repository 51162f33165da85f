// Runs the ranklab program in a shell, as a user does.
#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace ranklab {

struct Outcome {
  int exit_code = -1;
  std::string output = {};  // of the command line's stdout; add 2>&1 for stderr
};

inline Outcome run_command(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), n);
  return {WEXITSTATUS(::pclose(pipe)), output};
}

}  // namespace ranklab
