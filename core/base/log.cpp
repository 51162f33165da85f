#include "core/base/log.h"

#include <unistd.h>

#include <atomic>
#include <string>

namespace ranklab {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
thread_local int t_rank = -1;

}  // namespace

void set_log_level(LogLevel level) { g_level = level; }
LogLevel log_level() { return g_level; }
void set_log_rank(int global_rank) { t_rank = global_rank; }
int log_rank() { return t_rank; }

void log_line(LogLevel level, std::string_view text) {
  if (level < g_level.load(std::memory_order_relaxed)) return;
  std::string line;
  if (t_rank >= 0) line += "[rank " + std::to_string(t_rank) + "] ";
  if (level == LogLevel::kWarning) line += "warning: ";
  if (level == LogLevel::kError) line += "error: ";
  line += text;
  line += '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace ranklab
