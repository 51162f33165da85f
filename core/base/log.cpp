#include "core/base/log.h"

#include <unistd.h>

#include <string>

namespace ranklab {
namespace {

thread_local int t_rank = -1;

void log_line(std::string_view level, std::string_view text) {
  std::string line;
  if (t_rank >= 0) line += "[rank " + std::to_string(t_rank) + "] ";
  line += level;
  line += text;
  line += '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void set_log_rank(int global_rank) { t_rank = global_rank; }
int log_rank() { return t_rank; }

void log_warning(std::string_view text) { log_line("warning: ", text); }
void log_error(std::string_view text) { log_line("error: ", text); }

}  // namespace ranklab
