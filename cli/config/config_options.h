// The settings table (core/config/settings/fields.h) as command-line options, with the other sources of settings:
// --config FILE, the environment and --set (core/config/settings/sources.h defines their precedence).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/config/idle_settings.h"
#include "core/config/settings/sources.h"

namespace ranklab {

class CommandLine;

class ConfigOptions {
 public:
  // Declares one option per field on `app`, grouped as in the table. `defaults`: the values of flags that are not
  // given; the preset overrides them. `use`: what the command does with the model; settings that others read have no
  // effect.
  explicit ConfigOptions(CommandLine& app, TrainConfig defaults = {}, ModelUse use = ModelUse::kTrains);
  ~ConfigOptions();
  // Sets a setting that the command itself takes from a source such as a checkpoint, which `origin` names in errors. It
  // overrides files and the environment, but neither --set nor flags, and is never reported as idle. Call before
  // merged().
  void set(const std::string& key, const std::string& value, const std::string& origin);
  // The value that the sources give to one setting, "" if none sets it; for decisions about which settings to set().
  std::string said(const std::string& key) const;
  // Sets what no source gave, with its origin ("--layout auto"); such settings are never reported as idle.
  void settle(std::vector<ConfigSetting> settings);
  // After parsing: all sources merged, with the origin of each value. Sources are read once: a file may be a pipe.
  const MergedConfig& merged() const;
  TrainConfig config() const;
  // The plan of `config` (merged, perhaps adapted to a world); an error names the origin of the settings involved. With
  // --strict, settings without effect (core/config/idle_settings.h) are refused.
  RunPlan resolve(const TrainConfig& config) const;
  // Reports on stderr, once, the settings without effect in this run.
  void report_idle(const RunPlan& plan) const;
  // Whether any source that overrides the preset set this field ("parallel.tp").
  bool given(const std::string& key) const;
  // If no source names a layout, a note that it is the one that `train` uses by default; else "".
  std::string layout_note() const;

 private:
  struct Sources;
  const Sources& sources() const;
  std::vector<ConfigSetting> read_line() const;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ranklab
