// The file run.json of a run's folder, as `ranklab train` writes it (cli/train/run_record.h): what was run, where, with
// which settings, and where each setting came from. Thread rule: pure, except for the file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ranklab::viz {

struct RunSetting {
  std::string key, value, origin;  // "parallel.tp", "4", "flag --tp"
  // Whether a file, the environment or the command line set it, rather than a default or a preset.
  bool given() const { return !origin.empty() && origin != "default" && !origin.starts_with("preset "); }
};

struct RunOutcome {
  int64_t steps_done = 0;
  double seconds = 0;
  bool interrupted = false;
  std::string stopped;       // the message of the sentinel that ended the run
  std::string error;         // the error that ended the run
  int64_t failed_step = -1;  // the step in which it occurred
};

struct RunRecord {
  std::string version, began;  // "0.1.0", "2026-01-31 14:25:01 +0000"
  std::string command;         // as it was typed
  std::string again;           // the same with every setting as a flag, if some came from other sources; else ""
  std::string title, layout, world, data, loaded, profile;
  int64_t parameters = 0, ranks = 0, first_step = 0;
  std::vector<RunSetting> settings;
  std::vector<std::pair<std::string, std::string>> machine;  // "processor", "Intel ..."
  std::optional<RunOutcome> outcome;                         // nothing: the run is still running, or was killed

  const RunSetting* find(const std::string& key) const;  // null: no such setting
};

// A setting in which two runs differ; null: the run does not have it.
struct SettingDifference {
  std::string key;
  const RunSetting* a = nullptr;
  const RunSetting* b = nullptr;
};
// Settings in a's order, then those that only b has. The result refers to the runs, which must outlive it.
std::vector<SettingDifference> setting_differences(const RunRecord& a, const RunRecord& b);

// Fields that are missing, or of another type, stay empty. Throws kIo for a file that cannot be read, kBadFile for one
// that is not a JSON object.
RunRecord read_run_record(const std::string& path);

}  // namespace ranklab::viz
