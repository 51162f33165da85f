#include "viz/app/state_folder.h"

#include <cstdlib>
#include <filesystem>

namespace ranklab::viz {

std::string state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && *state == '/') {
    folder = std::filesystem::path(state) / "ranklab";
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".local" / "state" / "ranklab";
  } else {
    return {};
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  return failed ? std::string() : folder.string();
}

}  // namespace ranklab::viz
