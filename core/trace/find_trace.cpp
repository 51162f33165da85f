#include "core/trace/find_trace.h"

#include <filesystem>
#include <system_error>

namespace ranklab {

std::string find_trace(const std::string& named) {
  namespace fs = std::filesystem;
  std::error_code ignored, ended;
  const fs::path folder = named == "last" ? "runs/last" : named;
  if (!fs::is_directory(folder, ignored)) return named == "last" ? "runs/last/trace.json.gz" : named;
  fs::path found = folder / "trace.json.gz";
  if (fs::exists(found, ignored)) return found.string();
  fs::file_time_type newest = fs::file_time_type::min();
  for (fs::directory_iterator entry(folder, ended), end; !ended && entry != end; entry.increment(ended)) {
    if (!entry->path().filename().string().starts_with("trace.json.gz.part") || !entry->is_regular_file(ignored))
      continue;
    const fs::file_time_type written = entry->last_write_time(ignored);
    if (written <= newest) continue;
    newest = written;
    found = entry->path();
  }
  return found.string();
}

}  // namespace ranklab
