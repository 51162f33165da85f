// run.json of a run's folder, as `ranklab train` writes it (cli/train/run_record.h): what was run, where, with which
// settings and where each came from. Thread rule: pure, except for the file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ranklab::viz {

struct RunSetting {
  std::string key, value, origin;  // "parallel.tp", "4", "flag --tp"
  // A file, the environment or the command line set it, rather than a default or a preset.
  bool given() const { return !origin.empty() && origin != "default" && !origin.starts_with("preset "); }
};

struct RunOutcome {
  int64_t steps_done = 0;
  double seconds = 0;
  bool interrupted = false;
  std::string stopped;       // what the sentinel that ended the run says
  std::string error;         // that ended it
  int64_t failed_step = -1;  // in which it did
};

struct RunRecord {
  std::string version, began;  // "0.1.0", "2026-01-31 14:25:01 +0000"
  std::string command;         // as it was typed
  std::string again;           // the same with every setting as a flag, where some came from elsewhere; or ""
  std::string title, layout, world, data, loaded, profile;
  int64_t parameters = 0, ranks = 0, first_step = 0;
  std::vector<RunSetting> settings;
  std::vector<std::pair<std::string, std::string>> machine;  // "processor", "Intel ..."
  std::optional<RunOutcome> outcome;                         // nothing: it goes on, or was killed

  const RunSetting* find(const std::string& key) const;  // null: no such setting
};

// A setting that two runs have differently; null: the run does not know it.
struct SettingDifference {
  std::string key;
  const RunSetting* a = nullptr;
  const RunSetting* b = nullptr;
};
// In a's order, then what only b has. The runs outlive the result.
std::vector<SettingDifference> setting_differences(const RunRecord& a, const RunRecord& b);

// What is missing, or of another type, stays empty. Throws kIo for a file that cannot be read, kBadFile for
// one that is no JSON object.
RunRecord read_run_record(const std::string& path);

}  // namespace ranklab::viz
