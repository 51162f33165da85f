#include "core/parity/exhibit_parity.h"

#include <algorithm>

#include "core/config/exhibit_config.h"
#include "core/config/one_rank.h"
#include "core/precision/precision_policy.h"
#include "core/runtime/engine.h"

namespace ranklab {
namespace {

// The initial loss scale is too high, so the first steps are skipped.
constexpr int64_t kStepsOfFp16 = 12;

TrainConfig prepared(const Exhibit& exhibit, const MakeParityWorld& make_world, const std::string& folder,
                     ParityOptions& options) {
  if (*exhibit.before != '\0') trained(config_of_flags(flags_before(exhibit, folder)), make_world);
  TrainConfig config = config_of_flags(exhibit_flags(exhibit, folder));
  if (config.precision.fp16) options.steps = std::max(options.steps, kStepsOfFp16);
  return config;
}

ExhibitFinding finding_of(const Exhibit& exhibit, const Microscope& microscope, TrainConfig config) {
  config.inject = exhibit.name;
  ExhibitFinding finding{.result = microscope.examine(config)};
  const TensorVerdict* wrong = finding.result.wrong();
  finding.module = wrong != nullptr && matches(exhibit.guilty_module, wrong->key.name);
  finding.axis = finding.axis_text() == exhibit.guilty_axis;
  return finding;
}

}  // namespace

TrainResult trained(TrainConfig config, const MakeParityWorld& make_world) {
  config.trace = false;
  const RunPlan plan = resolve(config);
  return RuntimeEngine(default_components(make_world(plan), plan), plan).fit();
}

ExhibitFinding examine_exhibit(const Exhibit& exhibit, const MakeParityWorld& make_world, const std::string& folder,
                               ParityOptions options) {
  const TrainConfig config = prepared(exhibit, make_world, folder, options);
  return finding_of(exhibit, Microscope(reference_layout(config), make_world, options), config);
}

ExhibitFinding audit_exhibit(const Exhibit& exhibit, const MakeParityWorld& make_world, const std::string& folder,
                             ParityOptions options) {
  const TrainConfig config = prepared(exhibit, make_world, folder, options);
  return finding_of(exhibit, Microscope(make_world, options), config);
}

}  // namespace ranklab
