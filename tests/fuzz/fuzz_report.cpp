// Any bytes as the files of a run's folder, divided by the byte 0x1e: what can be read of it becomes a report, whose
// own script is its only one.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "tests/fuzz/scratch_folder.h"
#include "viz/html/report/report_page.h"

using namespace ranklab;
using namespace ranklab::viz;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::array kFiles = {"metrics.jsonl", "run.json", "sentinels.jsonl"};

void write_files(const ScratchFolder& folder, std::string_view bytes) {
  for (const char* name : kFiles) {
    const size_t end = std::min(bytes.find('\x1e'), bytes.size());
    folder.write(name, bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
}

size_t count(const std::string& page, std::string_view part) {
  size_t found = 0;
  for (size_t at = page.find(part); at != std::string::npos; at = page.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder scratch("report");
  write_files(scratch, {reinterpret_cast<const char*>(data), size});
  const std::array runs = {run_facts(scratch.path()), run_facts(scratch.path())};
  for (const size_t shown : {size_t{1}, size_t{2}}) {
    const std::string page = report_page(std::span(runs).first(shown));
    require(count(page, "<script") == 1 && count(page, "<img") == 0);
  }
  return 0;
}
