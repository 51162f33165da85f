#include "cli/museum/museum_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backends/meta/meta_world.h"
#include "cli/common/json_output.h"
#include "cli/common/style.h"
#include "cli/common/table.h"
#include "cli/common/terminal.h"
#include "cli/parity/parity_text.h"
#include "cli/world/make_world.h"
#include "core/base/error.h"
#include "core/base/files/temporary_folder.h"
#include "core/base/text.h"
#include "core/config/exhibit_config.h"
#include "core/parity/exhibit_parity.h"
#include "core/plan/type_check.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace {

constexpr int64_t kSteps = 100;  // before losses are compared

struct Shown {
  const Exhibit* exhibit = nullptr;
  ExhibitFinding finding;
  double first = 0, clean = 0, wrong = 0;  // losses: of the first step, and of the last step without and with the bug
  double seconds = 0;                      // time that parity took
  std::string types = {};                  // what the check of tensor types finds without computing numbers
};

TrainConfig trained_config(const Exhibit& exhibit, const std::string& folder) {
  TrainConfig config = config_of_flags(exhibit_flags(exhibit, folder));
  config.train_iters = std::max(config.train_iters, kSteps);
  return config;
}

Shown show(const Exhibit& exhibit) {
  // For the checkpoint of a training run that an exhibit needs before its own.
  const TemporaryFolder scratch("ranklab-museum-" + std::string(exhibit.name), "museum run");
  const std::string folder = scratch.path().string();
  const int64_t begin_ns = wall_now_ns();
  // Also trains the run that must come before.
  Shown shown{.exhibit = &exhibit, .finding = examine_exhibit(exhibit, simulated_world, folder)};
  shown.seconds = static_cast<double>(wall_now_ns() - begin_ns) * 1e-9;
  TrainConfig config = trained_config(exhibit, folder);
  const TrainResult clean = trained(config, simulated_world);
  shown.first = clean.first_loss;
  shown.clean = clean.last_loss;
  config.inject = exhibit.name;
  shown.types = types_of_step(resolve(config), make_meta_world)->first_named();
  shown.wrong = exhibit.kind == BugKind::kHang ? std::nan("") : trained(config, simulated_world).last_loss;
  return shown;
}

std::string loss_text(double loss) { return std::isnan(loss) ? "the run ends" : strprintf("%.3f", loss); }

std::string first_text(const ParityResult& result) {
  const TensorVerdict* wrong = result.wrong();
  return wrong == nullptr
             ? result.ended
             : strprintf("%s, step %lld", wrong->key.text().c_str(), static_cast<long long>(wrong->key.step));
}

nlohmann::ordered_json json_of(const Shown& one) {
  return {{"name", one.exhibit->name},
          {"first_loss", one.first},
          {"loss_without", one.clean},
          {"loss_with", std::isnan(one.wrong) ? nlohmann::ordered_json() : nlohmann::ordered_json(one.wrong)},
          {"parity_seconds", one.seconds},
          {"module_named", one.finding.module},
          {"axis_named", one.finding.axis},
          {"types", one.types},
          {"parity", parity_json(one.finding.result)}};
}

void print_in_full(const Shown& one) {
  const Style style = style_for(stdout);
  std::printf("%s: %s\n\n", style.bold(one.exhibit->name).c_str(), one.exhibit->title);
  std::printf("loss %.3f at first; after %lld steps %s without the bug, %s with it\n\n", one.first,
              static_cast<long long>(trained_config(*one.exhibit, "FOLDER").train_iters), loss_text(one.clean).c_str(),
              loss_text(one.wrong).c_str());
  std::fputs(parity_text(one.finding.result).c_str(), stdout);
  std::printf("types, without numbers: %s\n", one.types.empty() ? "no finding" : one.types.c_str());
  std::printf("\nThe story: ranklab museum show %s\n", one.exhibit->name);
}

}  // namespace

int run_exhibits(const std::vector<const Exhibit*>& exhibits, const MuseumRunOptions& options) {
  Table table({"`--inject`", "source", "without it", "with it", "first wrong tensor", "to blame", "smallest layout",
               "types", "s"});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  bool found = true;
  for (const Exhibit* exhibit : exhibits) {
    if (on_terminal(2)) std::fprintf(stderr, "\r\033[K  %s ", exhibit->name);
    const Shown one = show(*exhibit);
    if (on_terminal(2)) std::fputs("\r\033[K", stderr);
    found = found && one.finding.result.differs();
    rows.push_back(json_of(one));
    table.add({"`" + std::string(exhibit->name) + "`", exhibit->citation, loss_text(one.clean), loss_text(one.wrong),
               first_text(one.finding.result), one.finding.axis_text(), "`" + one.finding.result.smallest + "`",
               one.types, strprintf("%.1f", one.seconds)});
    if (!options.json && !options.table) print_in_full(one);
  }
  if (options.json) std::fputs(json_result({{"exhibits", rows}}).c_str(), stdout);
  if (!options.json && options.table) std::fputs(table.for_stdout().c_str(), stdout);
  return found ? 0 : exit_code(ErrorKind::kCheckFailed);
}

}  // namespace ranklab
