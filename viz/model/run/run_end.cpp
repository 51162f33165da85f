#include "viz/model/run/run_end.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/trace/find_trace.h"

namespace ranklab::viz {
namespace {

// The first step from which on the loss is not finite; -1: the last loss is finite.
int diverged_at(const std::vector<Curve>& curves) {
  const auto loss = std::ranges::find(curves, "loss", &Curve::name);
  int step = -1;
  if (loss == curves.end()) return step;
  for (const CurvePoint& point : loss->points) {
    if (std::isfinite(point.value))
      step = -1;
    else if (step < 0)
      step = point.step;
  }
  return step;
}

// The other lines of a long message list every rank's calls.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string steps_text(int64_t steps) { return std::to_string(steps) + (steps == 1 ? " step" : " steps"); }

}  // namespace

RunEnd failed_run(const std::string& error, int step) {
  return {"the run ended with an error: " + first_line(error), true, step};
}

RunEnd run_end(const std::optional<RunRecord>& record, const std::vector<Curve>& curves) {
  if (record && record->outcome) {
    const RunOutcome& end = *record->outcome;
    if (!end.error.empty()) return failed_run(end.error, static_cast<int>(end.failed_step));
    if (!end.stopped.empty())
      return {"a sentinel stopped the run after " + steps_text(end.steps_done) + ": " + first_line(end.stopped), true};
    if (end.interrupted) return {"the run was interrupted after " + steps_text(end.steps_done)};
  }
  if (const int step = diverged_at(curves); step >= 0)
    return {strprintf("the run diverged: its loss is not finite from step %d on", step), true, step};
  if (record && !record->outcome) return {"the end of the run is not recorded: it is still running, or was killed"};
  return {};
}

RunEnd run_end_beside(const TraceStore& store) {
  std::optional<RunRecord> record;
  std::vector<Curve> read;
  std::error_code none;
  // A trace with another name may be next to the files of another run.
  const bool of_folder = std::filesystem::path(store.source()).filename() == kTraceFileName;
  if (!of_folder && !is_unfinished_trace(store.source())) return {};
  try {
    const std::filesystem::path path = std::filesystem::path(store.source()).parent_path() / "run.json";
    if (std::filesystem::is_regular_file(path, none)) record = read_run_record(path.string());
    read = all_curves(store);
  } catch (const Error&) {
    // Nobody asked for this file, so the trace is shown without it.
  }
  return run_end(record, read);
}

}  // namespace ranklab::viz
