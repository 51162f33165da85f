#include "viz/model/run/run_files.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/trace/find_trace.h"
#include "viz/model/store/load_trace.h"

namespace ranklab::viz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostPoints = 200;  // a chart has about 300 pixels
constexpr const char* kWant = "the folder that a run wrote (its --log-dir), last, or a trace (.json, .json.gz)";
constexpr std::array kFiles = {"run.json", "metrics.jsonl", "log.txt", "sentinels.jsonl", kTraceFileName};

// Whether the file has this name in every run's folder, so that it stands for the folder.
bool is_of_folder(const std::string& path) {
  return std::ranges::find(kFiles, fs::path(path).filename().string()) != kFiles.end();
}

// Whether a trace was named that may be next to another run's files, so that it must be read alone.
bool is_trace_alone(const std::string& path) {
  return path != "last" && is_there(path) && !is_folder(path) && !is_of_folder(path);
}

std::string folder_of(const std::string& path) {
  if (path == "last") return "runs/last";
  if (is_folder(path)) return path;
  const bool named = path.ends_with(".json") || path.ends_with(".json.gz") || is_of_folder(path);
  const std::string parent = fs::path(path).parent_path().string();
  if (is_there(path)) {
    if (!named) require_folder(path, "report", kWant);
    return parent.empty() ? "." : parent;
  }
  throw Error(ErrorKind::kIo, {.where = "report",
                               .what = "no such run",
                               .got = quote(path),
                               .want = kWant,
                               .fix = "ranklab train --log-dir runs/mine, then ranklab report runs/mine"});
}

// The trace that was named, or the one in the folder.
std::string trace_of(const std::string& path) { return is_trace_alone(path) ? path : find_trace(folder_of(path)); }

// A dangling link counts as existing: opening it reports what is wrong with it.
bool there(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

// Reads one file. If that fails, the reason becomes a problem of the report, and the other files are still read.
template <typename Read>
void read_file(RunFiles& run, const std::string& path, const Read& read) {
  if (!there(path)) return;
  const std::string name = fs::path(path).filename().string();
  const auto note = [&](const std::string& why) { run.problems.push_back(name + ": " + why); };
  try {
    const std::string problem = read(path);
    if (!problem.empty()) note(problem);
  } catch (const Error& error) {
    note(error.text().what + (error.text().got.empty() ? "" : ": " + error.text().got));
  }
}

}  // namespace

const Curve* RunFiles::curve(const std::string& name) const {
  const auto at = std::ranges::find(curves, name, &Curve::name);
  return at == curves.end() ? nullptr : &*at;
}

std::string RunFiles::title() const {
  if (record && !record->title.empty()) return record->title;
  return trace && !trace->title().empty() ? trace->title() : folder;
}

RunFiles read_run(const std::string& path) {
  RunFiles run;
  run.folder = folder_of(path);
  require_folder(run.folder, "report", kWant);  // also one without access, where every file would seem to exist
  const std::string trace = trace_of(path);
  const auto in_folder = [&](const char* name) { return there(run.folder + "/" + name); };
  const bool any = there(trace) || std::ranges::any_of(kFiles, in_folder);
  RANKLAB_CHECK(any, ErrorKind::kIo, .where = "report", .what = "this folder has no files of a run",
                .got = quote(run.folder), .want = std::string("metrics.jsonl, run.json or ") + kTraceFileName,
                .fix = "name a run's --log-dir");
  const auto read_trace = [&](const std::string& file) {
    run.trace = load_trace(file);
    return run.trace->warning();
  };
  if (is_trace_alone(path)) {  // if nothing of it can be shown, load_trace() throws: there is nothing to report
    if (std::string problem = read_trace(trace); !problem.empty())
      run.problems.push_back(fs::path(trace).filename().string() + ": " + problem);
    return run;
  }
  read_file(run, run.folder + "/run.json", [&](const std::string& file) {
    run.record = read_run_record(file);
    return std::string();
  });
  read_file(run, run.folder + "/metrics.jsonl", [&](const std::string& file) {
    MetricLines lines = read_metric_lines(file, kMostPoints);
    run.curves = std::move(lines.curves);
    return lines.problem.empty() ? "" : lines.problem + "; what is before it is shown";
  });
  read_file(run, run.folder + "/sentinels.jsonl", [&](const std::string& file) {
    run.sentinels = read_fired_sentinels(file);
    return run.sentinels.problem;
  });
  read_file(run, trace, read_trace);
  return run;
}

std::vector<std::string> files_of_run(const std::string& path) {
  std::vector<std::string> out;
  for (const char* name : kFiles) out.push_back(folder_of(path) + "/" + name);
  out.push_back(trace_of(path));
  return out;
}

}  // namespace ranklab::viz
