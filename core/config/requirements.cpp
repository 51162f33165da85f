#include "core/config/requirements.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/device_choice.h"
#include "core/config/settings/fields.h"

namespace ranklab {
namespace {

const ConfigField& field_of(const std::string& key) {
  const ConfigField* field = find_field(key);
  RANKLAB_CHECK(field != nullptr, ErrorKind::kInternal, .where = "requirements", .what = "no such setting",
                .got = quote(key));
  return *field;
}

// The setting as typed on a command line, with the value from `config` or from the row.
std::string words_of(const std::string& key, const std::string& value) { return words_of(field_of(key), value); }

std::string requested_text(const Feature& feature, const TrainConfig& config) {
  if (feature.shown) return feature.shown(config);
  std::vector<std::string> words;
  for (const auto& [key, unused] : feature.settings) words.push_back(words_of(key, field_of(key).get(config)));
  return join(words, ", ");
}

std::string place_text(const TrainConfig& config) {
  const std::string backend = words_of("parallel.backend", config.backend);
  return config.device == kUsualDevice ? backend : words_of("parallel.device", config.device) + ", " + backend;
}

// How to get a world with the capability: "--device cpu, or --backend NAME".
std::string where_possible(const TrainConfig& config, Capability capability) {
  std::vector<std::string> ways;
  const Backend& here = find_backend(config.backend);
  if (here.on_host.has(capability)) ways.push_back(words_of("parallel.device", kHostDevice));
  if (here.on_gpu.has(capability)) ways.push_back(words_of("parallel.device", kGpuDevice));
  for (const Backend& row : backends()) {
    const bool usual = (row.on_host.empty() ? row.on_gpu : row.on_host).has(capability);
    if (row.name != here.name && usual) ways.push_back(words_of("parallel.backend", row.name));
  }
  return join(ways, " or ");
}

[[noreturn]] void refuse(const Requirement& row, const std::string& got, const std::string& elsewhere,
                         const std::string& where = "config") {
  const bool both = !elsewhere.empty() && !row.instead.empty();
  const std::string want = elsewhere + (both ? ", or " : "") + row.instead;
  throw Error(ErrorKind::kInvalidArgument, {.where = where,
                                            .what = row.why,
                                            .got = got,
                                            .want = want,
                                            .fix = row.needs ? "use that, or leave it out (ranklab list combinations)"
                                                             : "leave one of them out (ranklab list combinations)"});
}

bool has(const Feature& feature, const TrainConfig& config) {
  return feature.requested_by && feature.requested_by(config);
}
bool has(const Feature& feature, const RunPlan& plan) {
  return feature.requested_by_plan != nullptr ? feature.requested_by_plan(plan) : has(feature, plan.config);
}

bool takes_a_plan(const Requirement& row) {
  return row.feature.requested_by_plan != nullptr || (row.excludes && row.excludes->requested_by_plan != nullptr);
}

}  // namespace

std::string text_of(const Feature& feature) {
  if (!feature.command.empty()) return feature.command;
  std::vector<std::string> words;
  for (const auto& [key, value] : feature.settings) words.push_back(words_of(key, value));
  return join(words, " ");
}

void check_requirements(const TrainConfig& config) {
  for (const Requirement& row : requirements()) {
    if (takes_a_plan(row)) continue;
    if (row.needs && !config.can(*row.needs) && has(row.feature, config))
      refuse(row, requested_text(row.feature, config) + ", " + place_text(config), where_possible(config, *row.needs));
    if (row.excludes && has(row.feature, config) && has(*row.excludes, config))
      refuse(row, requested_text(row.feature, config) + ", " + requested_text(*row.excludes, config), "");
  }
}

void check_requirements(const RunPlan& plan) {
  for (const Requirement& row : requirements()) {
    if (!takes_a_plan(row) || !row.excludes || !has(row.feature, plan) || !has(*row.excludes, plan)) continue;
    refuse(row, requested_text(row.feature, plan.config) + ", " + requested_text(*row.excludes, plan.config), "");
  }
}

void check_command(const TrainConfig& config, Capability capability, const std::string& where) {
  for (const Requirement& row : requirements())
    if (row.needs == capability && !row.feature.command.empty() && !config.can(capability))
      refuse(row, place_text(config), where_possible(config, capability), where);
}

void check_world(const TrainConfig& config, Capabilities capabilities, const std::string& world) {
  for (const Requirement& row : requirements())
    if (row.needs && !capabilities.has(*row.needs) && has(row.feature, config))
      refuse(row, requested_text(row.feature, config) + ", " + world,
             "a world that has " + std::string(text_of(*row.needs)));
}

}  // namespace ranklab
