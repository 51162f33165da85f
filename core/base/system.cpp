#include "core/base/system.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <sstream>
#include <system_error>

#include "core/base/files/input_file.h"

namespace ranklab {
namespace {

// The number of a row such as "MemAvailable:   123 kB" in a kernel file; 0 when the file has no such row.
int64_t bytes_of_row(const char* path, const std::string& field) {
  std::istringstream file(read_file_if_any(path));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    if (int64_t kilobytes = 0; words >> key >> kilobytes && key == field) return kilobytes * 1024;
  }
  return 0;
}

// The memory that the limit of the cgroup (version 2) leaves; the largest number if there is no limit.
int64_t left_by_cgroup() {
  const std::string group = "/sys/fs/cgroup/";
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  int64_t limit = 0, used = 0, cache = 0;
  if (!(std::istringstream(read_file_if_any(group + "memory.max")) >> limit)) return kNoLimit;  // "max", or no file
  std::istringstream(read_file_if_any(group + "memory.current")) >> used;
  std::istringstream rows(read_file_if_any(group + "memory.stat"));
  std::string key;
  for (int64_t bytes = 0; rows >> key >> bytes;)
    if (key == "inactive_file") cache = bytes;
  return std::max<int64_t>(limit - used + cache, 1);
}

}  // namespace

std::filesystem::path program_path() {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/self/exe", unreadable);
}

std::string processor_vendor() {
#if defined(__x86_64__)
  unsigned leaf = 0, words[3] = {};  // in the order in which the vendor string is read
  if (__get_cpuid(0, &leaf, &words[0], &words[2], &words[1]) != 0)
    return {reinterpret_cast<const char*>(words), sizeof(words)};
#endif
  return "";
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int terminal_columns(int otherwise, int descriptor) {
  constexpr long kMost = 1000;
  const char* set = std::getenv("COLUMNS");
  if (const long columns = set == nullptr ? 0 : std::strtol(set, nullptr, 10); columns > 0)
    return static_cast<int>(std::min(columns, kMost));
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::min<int>(size.ws_col, kMost) : otherwise;
}

int64_t system_memory_bytes(const std::string& field) { return bytes_of_row("/proc/meminfo", field); }
int64_t available_memory_bytes() { return std::min(system_memory_bytes("MemAvailable:"), left_by_cgroup()); }
int64_t process_memory_bytes(const std::string& field) { return bytes_of_row("/proc/self/smaps_rollup", field); }

double cpu_time_ms(CpuTime whose) {
  timespec time = {};
  clock_gettime(whose == CpuTime::kThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

}  // namespace ranklab
