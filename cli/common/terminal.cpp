#include "cli/common/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/files/input_file.h"
#include "core/base/system.h"

namespace ranklab {
namespace {

// Launchers that may put a terminal between a rank and their own output (Open MPI and PRRTE, MPICH's Hydra, PMIx).
constexpr std::array<const char*, 4> kRankVariables = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                                       "MPI_LOCALRANKID"};

std::string proc(int pid, const char* file) { return "/proc/" + std::to_string(pid) + "/" + file; }

bool is_rank(int pid) {
  const std::string variables = '\0' + read_file_if_any(proc(pid, "environ"));
  return std::any_of(kRankVariables.begin(), kRankVariables.end(), [&](const char* name) {
    return variables.find('\0' + std::string(name) + '=') != std::string::npos;
  });
}

// 0 if unknown. The name in parentheses, which comes before it, may contain anything.
int parent_of(int pid) {
  const std::string stat = read_file_if_any(proc(pid, "stat"));
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 4 > stat.size() ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

// The nearest ancestor process that is not itself part of a rank; 0: none.
int launcher_of_this_rank() {
  int pid = ::getppid();
  for (int i = 0; i < 64 && pid > 1 && is_rank(pid); ++i) pid = parent_of(pid);
  return pid > 1 ? pid : 0;
}

bool is_terminal_of(int pid, int descriptor) {
  std::error_code failed;
  const std::string target =
      std::filesystem::read_symlink(proc(pid, ("fd/" + std::to_string(descriptor)).c_str()), failed).string();
  return !failed && (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") || target == "/dev/console");
}

}  // namespace

bool on_terminal(int descriptor) {
  if (::isatty(descriptor) == 0) return false;
  const bool rank = std::any_of(kRankVariables.begin(), kRankVariables.end(),
                                [](const char* name) { return !environment_variable(name).empty(); });
  // If the launcher is not visible, it is on another host and forwards the text.
  return !rank || is_terminal_of(launcher_of_this_rank(), descriptor);
}

}  // namespace ranklab
