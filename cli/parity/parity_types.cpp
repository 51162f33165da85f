#include "cli/parity/parity_types.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "backends/meta/meta_world.h"
#include "cli/common/json_output.h"
#include "cli/common/style.h"
#include "cli/common/table.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/parity/every_layout.h"
#include "core/parity/smaller_layouts.h"
#include "core/plan/type_check.h"

namespace ranklab {
namespace {

std::string axis_of(const TypeFinding& finding) {
  return finding.axis == Axis::kCount ? "none" : std::string(name(finding.axis));
}

std::string sentence(const TypeFinding& f) {
  return f.module + ", " + name(f.phase) + ", over " + axis_of(f) + ": " + f.got;
}

nlohmann::ordered_json json_of(const std::string& layout, const TypeReport& report) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const TypeFinding& f : report.findings())
    findings.push_back({{"module", f.module},
                        {"phase", name(f.phase)},
                        {"axis", axis_of(f)},
                        {"what", f.what},
                        {"type", f.type},
                        {"rank", f.rank},
                        {"got", f.got},
                        {"want", f.want},
                        {"fix", f.fix}});
  return {{"layout", layout},
          {"operators", report.operators()},
          {"gradients", report.gradients()},
          {"untyped", report.untyped()},
          {"findings", findings}};
}

std::string text_of(const std::string& layout, const TypeReport& report, const Style& style) {
  const std::vector<TypeFinding> findings = report.findings();
  std::string text = layout + ": types of " + std::to_string(report.operators()) + " operators and " +
                     std::to_string(report.gradients()) + " gradients, followed on shapes\n";
  if (findings.empty() && report.untyped() > 0)
    return text + "nothing is wrong; the types of " + std::to_string(report.untyped()) + " gradients are unknown\n";
  if (findings.empty()) return text + style.green("right: ") + "every reduction is there, once, over its ranks\n";
  const TypeFinding& first = findings.front();
  text += style.red("WRONG") + ", first " + sentence(first) + "\n";
  text += "  got   " + first.what + ", " + first.type + ", on rank " + std::to_string(first.rank) + "\n";
  text += "  want  " + first.want + "\n  do    " + first.fix + "\n";
  constexpr size_t kMore = 5;
  for (size_t i = 1; i < findings.size() && i <= kMore; ++i) text += "  also  " + sentence(findings[i]) + "\n";
  if (findings.size() > kMore + 1) text += "  and " + std::to_string(findings.size() - kMore - 1) + " more\n";
  return text;
}

// `wrong`: what was found, or "".
int print(const ParityRequest& request, const nlohmann::ordered_json& data, const std::string& text,
          const std::string& wrong) {
  if (!request.json) {
    std::fputs(text.c_str(), stdout);
  } else if (wrong.empty()) {
    std::fputs(json_result(data).c_str(), stdout);
  } else {
    const Error found(ErrorKind::kCheckFailed, {.where = "parity --types",
                                                .what = "the types of tensors do not go together",
                                                .got = wrong,
                                                .fix = "see findings"});
    std::fputs(json_error(found, data, exit_code(found.kind())).c_str(), stdout);
  }
  return !wrong.empty() ? exit_code(ErrorKind::kCheckFailed) : 0;
}

std::shared_ptr<const TypeReport> types_of(const RunPlan& plan) { return types_of_step(plan, make_meta_world); }

int types_of_all(const ConfigOptions& options, const ParityRequest& request) {
  Table table({"layout", "operators", "gradients", "untyped", "first finding"});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  size_t layouts = 0, wrong = 0;
  for (const TrainConfig& layout : every_layout(options.config())) {
    const auto report = types_of(options.resolve(layout));
    const std::vector<TypeFinding> findings = report->findings();
    ++layouts;
    wrong += !findings.empty();
    rows.push_back(json_of(layout_flags(layout), *report));
    table.add({layout_flags(layout), std::to_string(report->operators()), std::to_string(report->gradients()),
               std::to_string(report->untyped()), findings.empty() ? "none" : sentence(findings.front())});
  }
  const std::string text = request.json ? "" : table.for_stdout();
  return print(request, {{"layouts", rows}, {"wrong", wrong}},
               text + strprintf("%zu layouts, %zu with findings\n", layouts, wrong),
               wrong > 0 ? std::to_string(wrong) + " layouts" : "");
}

}  // namespace

int run_types(const ConfigOptions& options, const ParityRequest& request) {
  if (request.all) return types_of_all(options, request);
  const TrainConfig config = options.config();
  const auto report = types_of(options.resolve(config));
  const std::vector<TypeFinding> findings = report->findings();
  return print(request, json_of(layout_flags(config), *report),
               text_of(layout_flags(config), *report, style_for(stdout)),
               findings.empty() ? "" : sentence(findings.front()));
}

}  // namespace ranklab
