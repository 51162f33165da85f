// Which features a run cannot combine, in one table: a row is a feature (settings that request it) and what it needs of
// the world (a capability), or another feature that it excludes, and why. resolve() and RuntimeEngine check it,
// `ranklab list combinations` prints it, and the tests run every row, refused and allowed. A constraint between numbers
// (a size that must divide another) is not a row; it is checked with the setting. Adding a row = one entry in
// requirement_rows.cpp. Torch-free. Thread rule: immutable.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/capability.h"
#include "core/config/train_config.h"

namespace ranklab {

// Something a run can request.
struct Feature {
  using Settings = std::vector<std::pair<std::string, std::string>>;  // keys of config_fields(), and values
  Settings settings = {};      // one way to request it: what the table shows, and the tests set
  Settings surroundings = {};  // what else the tests set, so that no other check refuses the run
  std::function<bool(const TrainConfig&)> requested_by = {};  // empty: requested by a command, or ...
  bool (*requested_by_plan)(const RunPlan&) = nullptr;        // ... as a result of the schedule
  std::function<std::string(const TrainConfig&)> shown = {};  // its name in errors; empty: the settings
  std::string command = {};                                   // the command that requests it, where no setting does
};

struct Requirement {
  Feature feature;
  std::optional<Capability> needs = std::nullopt;
  std::optional<Feature> excludes = std::nullopt;  // set where no capability is missing
  std::string why;                                 // the reason, as the error states it
  std::string instead = {};                        // for another world: the alternative to suggest
};

std::span<const Requirement> requirements();

// "--collectives gloo", from the row's settings, or the command.
std::string text_of(const Feature& feature);

// Throws kInvalidArgument for the first row that refuses the run: rows decided by the settings, ...
void check_requirements(const TrainConfig& config);
// ... and rows decided by the schedule.
void check_requirements(const RunPlan& plan);
// For a command that needs a capability itself. `where`: the location named in the error.
void check_command(const TrainConfig& config, Capability capability, const std::string& where);
// Throws when a world with these capabilities cannot run the configuration. `world` is the world's description.
void check_world(const TrainConfig& config, Capabilities capabilities, const std::string& world);

}  // namespace ranklab
