#include "core/base/system.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <system_error>

namespace ranklab {

std::filesystem::path program_path() {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/self/exe", unreadable);
}

int terminal_columns(int otherwise) {
  if (const char* set = std::getenv("COLUMNS"); set != nullptr && std::atoi(set) > 0) return std::atoi(set);
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : otherwise;
}

int64_t system_memory_bytes(const std::string& field) {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (int64_t kilobytes = 0; file >> key >> kilobytes >> unit;) {
    if (key == field) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace ranklab
