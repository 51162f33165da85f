#include "core/runtime/record/log_lines.h"

#include <filesystem>
#include <system_error>

#include "core/base/files/atomic_file.h"
#include "core/base/files/input_file.h"

namespace ranklab {

void keep_lines_before(const std::string& path, int64_t first_step, const StepOfLine& step_of) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return;
  constexpr uint64_t kMostBytes = uint64_t{4} << 30;  // enough for ten million steps
  const std::string text =
      read_whole_file(path, kMostBytes, {.where = "log", .fix = "pass another folder with --log-dir"});
  std::string kept;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    const int64_t step = step_of(line);
    if (step >= 0 && step < first_step) kept += line + "\n";
  }
  write_file_atomically(path, kept,
                        {.where = "log",
                         .what = "cannot shorten the log of the run that is resumed",
                         .fix = "pass a folder you may write to with --log-dir"});
}

}  // namespace ranklab
