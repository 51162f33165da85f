// Any bytes as a trace file, plain or gzip: reading, validating and reporting on it end in an answer or in ranklab's
// own error.
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/trace/trace_report.h"
#include "core/trace/trace_validate.h"
#include "tests/fuzz/scratch_folder.h"

using namespace ranklab;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder kFolder("fuzz_trace");
  const std::string path = kFolder.write("trace.json", {reinterpret_cast<const char*>(data), size});
  try {
    validate_trace_file(path);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  try {
    format_summary(summarize(read_chrome_trace(path)));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
