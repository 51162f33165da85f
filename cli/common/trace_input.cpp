#include "cli/common/trace_input.h"

#include <filesystem>

namespace ranklab {

TracePrefix read_trace_input(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (name.find(".part") != std::string::npos) {
    TracePrefix begun = read_trace_prefix(path);
    if (!begun.file.ranks.empty()) return begun;
  }
  return {.file = read_chrome_trace(path), .broken = {}};
}

}  // namespace ranklab
