// Runs the ranklab program in a shell, as a user does.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace ranklab {

struct Outcome {
  int exit_code = -1;
  std::string output = {};  // of the command line's stdout; add 2>&1 for stderr
};

// A path for this test process alone (the same test of another build may run at the same time), removed at the end.
inline std::string temporary_path(const std::string& name) {
  struct Paths {
    std::vector<std::string> all;
    ~Paths() {
      std::error_code ignored;
      for (const std::string& path : all) std::filesystem::remove_all(path, ignored);
    }
  };
  static Paths paths;
  return paths.all.emplace_back(testing::TempDir() + "/" + name + "_" + std::to_string(::getpid()));
}

inline Outcome run_command(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), n);
  return {WEXITSTATUS(::pclose(pipe)), output};
}

}  // namespace ranklab
