#include "cli/config/config_options.h"
#include "cli/common/command_line.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/toml.h"

namespace ranklab {

// Settings that the command itself sets come between `below` and `line`.
struct ConfigOptions::Sources {
  std::vector<ConfigSetting> below;  // files, then the environment
  std::vector<ConfigSetting> line;   // --set, then flags
};

struct ConfigOptions::State {
  struct Given {
    const ConfigField* field;
    std::string text;
    bool on = false;
    CommandOption* option = nullptr;
  };
  TrainConfig defaults;
  ModelUse use = ModelUse::kTrains;
  std::deque<Given> given;  // the command line keeps references to the members
  std::vector<std::string> files;
  std::vector<std::string> assignments;
  std::optional<MergedConfig> merged;
  std::optional<Sources> sources;
  std::vector<ConfigSetting> settled;
  std::vector<ConfigSetting> placed;  // set by the command itself, such as those of a checkpoint's model
  bool strict = false, reported = false;

  std::vector<std::string> idle(const RunPlan& plan) const {
    std::map<std::string, std::string> origins = merged->origins;
    for (const ConfigSetting& one : settled) origins.erase(one.key);
    for (const ConfigSetting& one : placed)
      if (const auto found = origins.find(one.key); found != origins.end() && found->second == one.origin)
        origins.erase(found);
    return idle_settings(plan, origins, use);
  }
};

namespace {

// The options that a user needs first are shown by --help, the others by --help-all.
struct FirstSetting {
  const char* heading;
  const char* key;
};
constexpr FirstSetting kFirstSettings[] = {
    {"Model, data and steps", "model.preset"},
    {"Model, data and steps", "model.seq_length"},
    {"Model, data and steps", "data.path"},
    {"Model, data and steps", "train.train_iters"},
    {"Model, data and steps", "train.global_batch_size"},
    {"Model, data and steps", "train.micro_batch_size"},
    {"Model, data and steps", "optim.lr"},
    {"Ranks", "parallel.world_size"},
    {"Ranks", "parallel.tp"},
    {"Ranks", "parallel.pp"},
    {"Ranks", "parallel.pipeline_schedule"},
    {"Ranks", "parallel.dp"},
    {"Ranks", "parallel.cp"},
    {"Ranks", "parallel.ep"},
    {"Ranks", "parallel.zero_stage"},
    {"Precision and memory", "train.bf16"},
    {"Precision and memory", "precision.recipe"},
    {"Precision and memory", "memory.recompute_granularity"},
    {"Machine", "parallel.backend"},
    {"Machine", "sim.hardware"},
    {"Files", "checkpoint.save"},
    {"Files", "checkpoint.load"},
    {"Files", "log.dir"},
};

const char* short_heading(const ConfigField& field) {
  const auto* found = std::find_if(std::begin(kFirstSettings), std::end(kFirstSettings),
                                   [&](const FirstSetting& first) { return first.key == field.key; });
  return found == std::end(kFirstSettings) ? "" : found->heading;
}

}  // namespace

ConfigOptions::ConfigOptions(CommandLine& app, TrainConfig defaults, ModelUse use) : state_(std::make_unique<State>()) {
  state_->defaults = std::move(defaults);
  state_->use = use;
  app.wide_help();
  app.add_help_all();
  app.add_option("-c,--config", state_->files, "TOML file of settings; repeatable, later wins")
      ->one_value_each()
      ->type_name("FILE");
  app.add_option("-o,--set", state_->assignments, "one setting by its key (optim.lr=1e-3); repeatable")
      ->one_value_each()
      ->type_name("KEY=VALUE");
  app.add_flag("--strict", state_->strict,
               "reject settings that have no effect in this run, instead of only reporting them");
  for (const ConfigField& field : config_fields()) {
    State::Given& given = state_->given.emplace_back();
    given.field = &field;
    std::vector<std::string> names = field.flags;
    if (field.kind == ConfigField::Kind::kFlag) {
      for (const std::string& flag : field.flags) names.push_back("!--no-" + flag.substr(2));
      given.option = app.add_flag(join(names, ","), given.on, field.help);
    } else {
      std::string help = field.help;
      if (!field.choices.empty()) help += ": " + join(field.choices, " | ");
      given.option = app.add_option(join(names, ","), given.text, help);
      const std::string value = field.get(state_->defaults);
      if (!value.empty()) given.option->default_str(value);
      given.option->type_name("");
    }
    given.option->group(field.group)->in_short_help(short_heading(field));
  }
}

ConfigOptions::~ConfigOptions() = default;

void ConfigOptions::set(const std::string& key, const std::string& value, const std::string& origin) {
  state_->placed.push_back({key, value, origin});
}

void ConfigOptions::settle(std::vector<ConfigSetting> settings) {
  state_->settled = std::move(settings);
  state_->merged.reset();
}

std::string ConfigOptions::said(const std::string& key) const {
  std::string text;
  for (const auto* part : {&sources().below, &sources().line})
    for (const ConfigSetting& setting : *part)
      if (setting.key == key) text = setting.text;
  return text;
}

const MergedConfig& ConfigOptions::merged() const {
  if (state_->merged) return *state_->merged;
  std::vector<ConfigSetting> all = sources().below;
  for (const std::vector<ConfigSetting>& more : {state_->placed, sources().line, state_->settled})
    all.insert(all.end(), more.begin(), more.end());
  state_->merged = merge_config(state_->defaults, all);
  return *state_->merged;
}

// Sources are read once, because a file may be a pipe.
const ConfigOptions::Sources& ConfigOptions::sources() const {
  if (state_->sources) return *state_->sources;
  Sources read;
  for (const std::string& file : state_->files) {
    for (ConfigSetting& setting : read_config_toml(file)) read.below.push_back(std::move(setting));
  }
  for (ConfigSetting& setting : environment_settings(process_environment())) read.below.push_back(std::move(setting));
  read.line = read_line();
  state_->sources = std::move(read);
  return *state_->sources;
}

std::vector<ConfigSetting> ConfigOptions::read_line() const {
  std::vector<ConfigSetting> settings;
  for (const std::string& assignment : state_->assignments) settings.push_back(assignment_setting(assignment));
  for (const auto& given : state_->given) {
    if (given.option->count() == 0) continue;
    const bool flag = given.field->kind == ConfigField::Kind::kFlag;
    // An empty value is probably an unset shell variable; without this check the user's option would silently be
    // ignored.
    RANKLAB_CHECK(given.field->type != ConfigField::Type::kText || !given.text.empty(), ErrorKind::kInvalidArgument,
                  .where = "flag " + given.field->flags[0], .what = given.field->flags[0] + " has an empty value",
                  .got = "''", .want = "a value",
                  .fix = "leave it out, or set it back to nothing with --set " + given.field->key + "=");
    settings.push_back(
        {given.field->key, flag ? (given.on ? "true" : "false") : given.text, "flag " + given.field->flags[0]});
  }
  return settings;
}

TrainConfig ConfigOptions::config() const { return merged().config; }

RunPlan ConfigOptions::resolve(const TrainConfig& config) const {
  RunPlan plan = ranklab::resolve(config, merged().origins);
  if (!state_->strict) return plan;
  const std::vector<std::string> idle = state_->idle(plan);
  RANKLAB_CHECK(idle.empty(), ErrorKind::kInvalidArgument, .where = "--strict",
                .what = "settings have no effect in this run", .got = join(idle, ", "), .want = "none of them",
                .fix = "leave them out, or leave --strict out");
  return plan;
}

void ConfigOptions::report_idle(const RunPlan& plan) const {
  if (std::exchange(state_->reported, true)) return;
  for (const std::string& one : state_->idle(plan)) log_warning(one);
}

bool ConfigOptions::given(const std::string& key) const { return merged().given(key); }

std::string ConfigOptions::layout_note() const {
  const bool names_a_size =
      given("parallel.world_size") || std::ranges::any_of(kLayoutSizes, [this](const char* key) { return given(key); });
  return names_a_size || merged().config.parallel.world == 1
             ? ""
             : " (train's own layout: neither --tp, --pp, --dp nor --world-size is given)";
}

}  // namespace ranklab
