// Log lines tagged with the rank that wrote them, on stderr (data goes to stdout). One write(2) per line, so that lines
// of different ranks never mix. Thread rule: any thread; the rank tag is thread-local.
#pragma once
#include <string_view>

namespace ranklab {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void set_log_level(LogLevel level);
LogLevel log_level();
// Tags this thread's lines with "[rank N]"; -1 removes the tag.
void set_log_rank(int global_rank);
int log_rank();
void log_line(LogLevel level, std::string_view text);

inline void log_debug(std::string_view text) { log_line(LogLevel::kDebug, text); }
inline void log_info(std::string_view text) { log_line(LogLevel::kInfo, text); }
inline void log_warning(std::string_view text) { log_line(LogLevel::kWarning, text); }
inline void log_error(std::string_view text) { log_line(LogLevel::kError, text); }

}  // namespace ranklab
