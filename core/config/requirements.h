// Which features a run cannot combine, in one table: a row is a feature (settings that ask for it) and what it needs of
// the world (a capability), or the other feature with which it does not go, and why. resolve() and RuntimeEngine walk
// it, `ranklab list combinations` prints it, and the tests make a run of each row, refused and allowed. A constraint
// between numbers (a size that must divide another) is no row: it stands with the setting. Adding a row = one entry in
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

// Something a run can ask for.
struct Feature {
  using Settings = std::vector<std::pair<std::string, std::string>>;  // keys of config_fields(), and values
  Settings settings = {};      // a way to ask for it: what the table shows, and the tests set
  Settings surroundings = {};  // what else the tests set, so that nothing else refuses the run
  std::function<bool(const TrainConfig&)> asked_of = {};      // empty: a command asks for it, or ...
  bool (*asked_by_plan)(const RunPlan&) = nullptr;            // ... it takes the schedule to know
  std::function<std::string(const TrainConfig&)> shown = {};  // as an error names it; empty: the settings
  std::string command = {};                                   // that asks for it, where no setting does
};

struct Requirement {
  Feature feature;
  std::optional<Capability> needs = std::nullopt;
  std::optional<Feature> excludes = std::nullopt;  // set where no capability is missing
  std::string why;                                 // as the error says it
  std::string instead = {};                        // of another world: what else to ask for
};

std::span<const Requirement> requirements();

// "--collectives gloo", as the row has it, or the command.
std::string text_of(const Feature& feature);

// Throws kInvalidArgument for the first row that refuses the run: those known from the settings, ...
void check_requirements(const TrainConfig& config);
// ... and those that the schedule decides.
void check_requirements(const RunPlan& plan);
// For a command whose own work needs a capability. `where`: of the error.
void check_command(const TrainConfig& config, Capability capability, const std::string& where);
// Whether a world that can do this runs it. `world` is how it describes itself.
void check_world(const TrainConfig& config, Capabilities capabilities, const std::string& world);

}  // namespace ranklab
