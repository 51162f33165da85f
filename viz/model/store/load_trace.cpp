#include "viz/model/store/load_trace.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"
#include "core/trace/find_trace.h"
#include "core/trace/pytorch/reader.h"
#include "viz/model/store/schedule_store.h"

namespace ranklab::viz {
namespace {

TraceStore store_of(TracePrefix prefix, const std::string& source) {
  TraceStore store(std::move(prefix.file), source);
  if (!prefix.broken.empty()) store.set_warning(std::move(prefix.broken));
  return store;
}

// A file in our format is not tried as another format, even if it has no rank or no event.
bool is_ours(const TracePrefix& prefix) { return !prefix.file.ranks.empty(); }

// Why reading stopped, without the advice that only applies to our own files.
std::string reason(const TracePrefix& ours, const Error& other) {
  std::string text = ours.broken.empty() ? other.text().what : ours.broken;
  if (text.starts_with("broken: ")) text.erase(0, 8);
  return text.substr(0, text.find("; "));
}

}  // namespace

void require_trace_file(const std::string& path) {
  const std::string file = find_trace(path);
  std::error_code ignored;
  const bool is_run = std::filesystem::exists(std::filesystem::path(file).parent_path() / "metrics.jsonl", ignored);
  const std::string make = "make one: ./ranklab train --train-iters 2";
  const InputFile readable(
      file, {.where = "trace file",
             .fix = is_run ? "a run writes it after its first traced step: wait for that, or " + make : make});
}

TraceStore load_trace(const std::string& path) {
  const std::string file = find_trace(path);
  require_trace_file(file);  // first, because an unreadable file would otherwise look like a trace of an unknown kind
  if (file.ends_with(".csv")) return schedule_store_from_csv(file);
  TracePrefix ours = read_trace_prefix(file);
  if (is_ours(ours) || (ours.broken.empty() && ours.file.schema_version != 0 && ours.file.world_size == 0))
    return store_of(std::move(ours), file);
  try {
    return store_of(read_pytorch_traces(std::span<const std::string>(&file, 1)), file);
  } catch (const Error& error) {
    throw Error(error.kind(), {.where = "trace file " + file,
                               .what = "nothing in it can be shown",
                               .got = reason(ours, error),
                               .want = std::string("a ") + kTraceFileName +
                                       " of ranklab train, torch.profiler's JSON, or a schedule's CSV",
                               .fix = "make one: ./ranklab train --train-iters 2"});
  }
}

TraceStore load_traces(std::span<const std::string> paths) {
  RANKLAB_CHECK(!paths.empty(), ErrorKind::kInvalidArgument, .where = "traces", .what = "no file is named",
                .fix = std::string("name a ") + kTraceFileName + ", or last");
  if (paths.size() == 1) return load_trace(paths.front());
  for (const std::string& path : paths)
    RANKLAB_CHECK(path != "last" && !std::filesystem::is_directory(path), ErrorKind::kInvalidArgument,
                  .where = "traces", .what = "several files must be one run of torch.profiler, one file per rank",
                  .got = quote(path) + " among " + std::to_string(paths.size()), .want = "one run, or such files",
                  .fix = "two runs: ranklab trace diff A B, or ranklab viz A --compare B");
  return store_of(read_pytorch_traces(paths), paths.front() + " and " + std::to_string(paths.size() - 1) + " more");
}

}  // namespace ranklab::viz
