// Log lines tagged with the rank that wrote them, on stderr (data goes to stdout). One write(2) per line, so that lines
// of different ranks never mix. Thread rule: any thread; the rank tag is thread-local.
#pragma once
#include <string_view>

namespace ranklab {

// Tags this thread's lines with "[rank N]"; -1 removes the tag.
void set_log_rank(int global_rank);
int log_rank();

void log_warning(std::string_view text);
void log_error(std::string_view text);

}  // namespace ranklab
