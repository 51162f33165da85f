#include "cli/common/typed_program.h"

#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <system_error>

#include "core/base/shell_quote.h"
#include "core/base/system.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

bool runs(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

// ./ranklab builds into build/release/bin beside itself.
fs::path started_file() {
  const std::string driver = environment_variable("RANKLAB_DRIVER");
  if (!driver.empty()) return driver;
  const fs::path program = program_path(), build = program.parent_path().parent_path();
  const fs::path beside = build.parent_path().parent_path() / "ranklab";
  const bool release = build.filename() == "release" && build.parent_path().filename() == "build";
  return release && runs(beside) ? beside : program;
}

bool shell_finds(const fs::path& file) {
  std::istringstream folders(environment_variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path there = fs::path(folder) / "ranklab";
    std::error_code error;
    if (runs(there)) return fs::equivalent(there, file, error);
  }
  return false;
}

}  // namespace

std::string typed_program() {
  const fs::path file = started_file();
  if (file.empty() || shell_finds(file)) return "ranklab";
  std::error_code error;
  std::string typed = fs::proximate(file, error).string();
  if (error || (typed.starts_with("../") && file.string().size() <= typed.size())) typed = file.string();
  if (typed.find('/') == std::string::npos) typed = "./" + typed;
  return shell_word(typed);
}

std::string as_typed(std::string text) {
  const std::string named = "`ranklab ", typed = "`" + typed_program() + " ";
  for (size_t at = 0; (at = text.find(named, at)) != std::string::npos; at += typed.size())
    text.replace(at, named.size(), typed);
  return text;
}

}  // namespace ranklab
