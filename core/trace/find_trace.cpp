#include "core/trace/find_trace.h"

#include <filesystem>
#include <system_error>

#include "core/base/files/path_type.h"

namespace ranklab {

namespace fs = std::filesystem;

std::string trace_path(const std::string& folder) { return (fs::path(folder) / kTraceFileName).string(); }

bool is_unfinished_trace(const std::string& path) {
  return fs::path(path).filename().string().starts_with(std::string(kTraceFileName) + ".part");
}

std::string find_trace(const std::string& named) {
  std::error_code ignored, ended;
  const std::string folder = named == "last" ? "runs/last" : named;
  if (!is_folder(folder)) return named == "last" ? trace_path(folder) : named;
  std::string found = trace_path(folder);
  if (is_there(found)) return found;
  fs::file_time_type newest = fs::file_time_type::min();
  for (fs::directory_iterator entry(folder, ended), end; !ended && entry != end; entry.increment(ended)) {
    if (!is_unfinished_trace(entry->path().string()) || !entry->is_regular_file(ignored)) continue;
    const fs::file_time_type written = entry->last_write_time(ignored);
    if (written <= newest) continue;
    newest = written;
    found = entry->path().string();
  }
  return found;
}

}  // namespace ranklab
