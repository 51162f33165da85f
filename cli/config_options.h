// The settings table (core/config/config_fields.h) as command-line options, with the other sources of settings:
// --config FILE, the environment and --set (core/config/config_sources.h says which wins).
#pragma once
#include <memory>
#include <string>

#include "core/config/config_sources.h"

namespace ranklab {

class CommandLine;

class ConfigOptions {
 public:
  // Declares one option per field on `app`, grouped as in the table. `defaults` are the values of flags that are not
  // given, below the preset's.
  explicit ConfigOptions(CommandLine& app, TrainConfig defaults = {});
  ~ConfigOptions();
  // As if --set KEY=VALUE had been given, for commands that take a setting by its place. Before merged().
  void set(const std::string& key, const std::string& value);
  // After parsing: every source merged, with where each value came from. Sources are read once: a file may be a pipe.
  const MergedConfig& merged() const;
  TrainConfig config() const;
  // The plan of `config` (mine, perhaps adopted to a world); a refusal says where the settings it names came from. With
  // --strict settings without effect (core/config/idle_settings.h) are refused.
  RunPlan resolve(const TrainConfig& config) const;
  // Says on stderr, once, which settings have no effect in this run.
  void tell_idle(const RunPlan& plan) const;
  // Whether any source above the preset set this field ("parallel.tp").
  bool given(const std::string& key) const;

 private:
  MergedConfig merge_sources() const;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ranklab
