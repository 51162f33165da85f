#include "cli/common/command_tree.h"

#include <algorithm>
#include <set>

#include "cli/common/command_line.h"
#include "core/config/settings/fields.h"
#include "core/museum/exhibit.h"
#include "core/pipeline/schedules.h"
#include "core/precision/recipe.h"
#include "core/sim/hardware_profile.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

using Names = std::vector<std::string>;

Names preset_names() {
  Names presets;
  for (const ModelPreset& preset : model_presets()) presets.push_back(preset.name);
  return presets;
}
Names schedule_names() {
  Names names;
  for (const ScheduleKind& kind : schedule_kinds()) names.emplace_back(kind.name);
  return names;
}
Names bug_names() {
  Names names;
  for (const Exhibit* bug : exhibits()) names.emplace_back(bug->name);
  return names;
}
Names recipe_names() {
  Names names;
  for (const PrecisionRecipe& recipe : precision_recipes()) names.push_back(recipe.name);
  return names;
}

// The named values that an option accepts: its own words, or those of the setting with its name.
Names values_of(const OptionEntry& option, const CommandOption& given) {
  if (!given.words().empty()) {
    Names names;
    for (const auto& [name, help] : given.words()) names.push_back(name);
    return names;
  }
  const auto called = [&](const char* name) {
    return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
  };
  if (called("--hardware")) return hardware_profile_names();
  for (const ConfigField& field : config_fields()) {
    const std::set<std::string> flags(field.flags.begin(), field.flags.end());
    if (!flags.contains(option.names[0])) continue;
    if (!field.choices.empty()) return field.choices;
    if (field.key == "model.preset") return preset_names();
    if (field.key == "parallel.pipeline_schedule") return schedule_names();
    if (field.key == "precision.recipe") return recipe_names();
    if (field.key == "museum.inject") return bug_names();
    return {};
  }
  return {};
}

void walk(const CommandLine& app, const std::string& path, std::vector<CommandEntry>& out) {
  CommandEntry entry{.path = path, .about = app.about()};
  for (const CommandOption* option : app.options()) {
    OptionEntry row{.names = option->names(),
                    .help = option->about(),
                    .takes_value = option->takes_value(),
                    .is_setting = option->is_setting()};
    if (row.names.empty()) {
      const auto& words = option->words();
      entry.words.insert(entry.words.end(), words.begin(), words.end());
      entry.takes_files = entry.takes_files || words.empty() || option->about().find("FILE") != std::string::npos;
      continue;
    }
    if (row.takes_value) row.values = values_of(row, *option);
    entry.options.push_back(std::move(row));
  }
  for (const auto& sub : app.subcommands()) entry.subcommands.emplace_back(sub->name(), sub->about());
  out.push_back(std::move(entry));
  for (const auto& sub : app.subcommands()) walk(*sub, path + " " + sub->name(), out);
}

}  // namespace

Names CommandEntry::word_names() const {
  Names names;
  for (const auto* list : {&subcommands, &words})
    for (const auto& [name, help] : *list) names.push_back(name);
  return names;
}

Names CommandEntry::option_names() const {
  Names names;
  for (const OptionEntry& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<CommandEntry> command_tree(const CommandLine& program) {
  std::vector<CommandEntry> tree;
  walk(program, program.name(), tree);
  return tree;
}

}  // namespace ranklab
