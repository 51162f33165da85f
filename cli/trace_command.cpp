#include "cli/trace_command.h"

#include <cstdio>
#include <vector>

#include "core/base/error.h"
#include "core/trace/chrome_reader.h"
#include "core/trace/trace_report.h"
#include "core/trace/trace_validate.h"

namespace ranklab {

int trace_info(const std::string& path, bool json) {
  const TraceFile file = read_chrome_trace(path);
  const std::vector<RankSummary> summaries = summarize(file);
  if (!json) {
    std::printf("%s: %zu of %d ranks, %s time\n\n", path.c_str(), file.ranks.size(), file.world_size,
                file.clock == TraceClock::kVirtual ? "virtual" : "wall");
  }
  std::fputs((json ? format_summary_json(summaries) : format_summary(summaries)).c_str(), stdout);
  return 0;
}

int trace_validate(const std::string& path) {
  const std::vector<std::string> problems = validate_trace_file(path);
  for (const std::string& problem : problems) std::printf("%s\n", problem.c_str());
  if (!problems.empty()) return exit_code(ErrorKind::kCheckFailed);
  std::printf("%s: sound\n", path.c_str());
  return 0;
}

}  // namespace ranklab
