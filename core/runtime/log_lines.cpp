#include "core/runtime/log_lines.h"

#include <fstream>
#include <iterator>

#include "core/base/atomic_file.h"

namespace ranklab {

void keep_lines_before(const std::string& path, int64_t first_step, const StepOfLine& step_of) {
  std::ifstream in(path, std::ios::binary);
  if (!in.good()) return;
  const std::string text{std::istreambuf_iterator<char>(in), {}};
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
