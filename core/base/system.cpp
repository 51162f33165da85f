#include "core/base/system.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <system_error>

#include "core/base/error.h"
#include "core/base/input_file.h"

namespace ranklab {

std::filesystem::path program_path() {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/self/exe", unreadable);
}

std::filesystem::path new_temporary_folder(const std::string& name, const char* where) {
  std::error_code none;
  std::string pattern = (std::filesystem::temp_directory_path(none) / (name + "-XXXXXX")).string();
  RANKLAB_CHECK(!none && ::mkdtemp(pattern.data()) != nullptr, ErrorKind::kIo, .where = where,
                .what = "no temporary folder can be made", .got = pattern, .fix = "set TMPDIR to a writable folder");
  return pattern;
}

std::string processor_vendor() {
#if defined(__x86_64__)
  unsigned leaf = 0, words[3] = {};  // in the order in which the name is read
  if (__get_cpuid(0, &leaf, &words[0], &words[2], &words[1]) != 0)
    return {reinterpret_cast<const char*>(words), sizeof(words)};
#endif
  return "";
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int terminal_columns(int otherwise) {
  if (const char* set = std::getenv("COLUMNS"); set != nullptr && std::atoi(set) > 0) return std::atoi(set);
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : otherwise;
}

int64_t system_memory_bytes(const std::string& field) {
  std::istringstream file(read_file_if_any("/proc/meminfo"));
  std::string key, unit;
  for (int64_t kilobytes = 0; file >> key >> kilobytes >> unit;) {
    if (key == field) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace ranklab
