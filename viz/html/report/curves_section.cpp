// Curves over the steps of a run; those of two runs share axes.
#include <array>
#include <cmath>
#include <list>
#include <sstream>

#include "viz/html/page_text.h"
#include "viz/html/report/html_text.h"
#include "viz/html/report/line_chart.h"
#include "viz/html/report/report_page.h"
#include "viz/html/report/sections.h"

namespace ranklab::viz {
namespace {

struct ChartRow {
  const char* name;  // of the curve
  const char* title;
  const char* unit;
  bool always = false;  // if false, drawn only if it is not 0 all the time
};

constexpr ChartRow kCharts[] = {
    {"loss", "Loss", "mean over the tokens of a step", true},
    {"grad_norm", "Gradient norm", "before clipping", true},
    {"lr", "Learning rate", "", true},
    {"tokens_per_s", "Tokens per second", "wall clock of this machine", true},
    {"virtual_step_ms", "Step time", "ms, virtual, on the hardware profile"},
    {"mfu", "Model FLOPs utilization", "% of the profile's peak"},
    {"wall_mfu", "Model FLOPs utilization", "% of the GPUs' peak"},
    {"exposed_comm_fraction", "Exposed communication", "% of the step's time"},
    {"peak_memory_bytes", "Peak memory of rank 0", "MiB so far"},
    {"moe_max_over_mean", "Busiest expert", "times the mean load"},
    {"mtp_loss", "Multi-token prediction loss", ""},
    {"max_attention_logit", "Largest attention logit", "before softmax"},
    {"clipped_heads", "Clipped heads", "of all layers, by --qk-clip"},
    {"loss_scale", "Loss scale", ""},
};

bool has_values(const Curve& curve) {
  for (const CurvePoint& point : curve.points)
    if (!(point.value == 0)) return true;
  return false;
}

// RETURNS: "" if no run has the curve.
std::string chart_of(Runs runs, const ChartRow& row) {
  std::vector<ChartLine> lines;
  std::list<Curve> drawn;  // in the chart's unit; list nodes stay in place, because lines point to them
  constexpr std::array kNames = {"A", "B"};
  const bool with_validation = std::string(row.name) == "loss";
  for (size_t i = 0; i < runs.size(); ++i) {
    const Curve* curve = runs[i].files.curve(row.name);
    if (curve == nullptr || curve->points.empty() || (!row.always && !has_values(*curve))) continue;
    const bool alone = runs.size() == 1;
    const Curve* validation = with_validation ? runs[i].files.curve("validation_loss") : nullptr;
    const bool two = validation != nullptr && !validation->points.empty();
    drawn.push_back(in_shown_unit(*curve));
    lines.push_back({&drawn.back(), alone ? (two ? "training" : "") : kNames[i], kLetters[i]});
    if (two && alone) lines.push_back({validation, "validation", "more"});
  }
  return line_chart(row.title, row.unit, lines);
}

// The rules of the report's style that drawings and their colours need.
std::string drawing_style() {
  std::istringstream css(std::string(page_part("colors.css")) + std::string(page_part("report/report.css")));
  std::string style;
  for (std::string rule; std::getline(css, rule);)
    if (rule.starts_with(":root") || rule.starts_with("svg ") || rule.starts_with("@media (prefers-color-scheme"))
      style += rule + "\n";
  return style;
}

}  // namespace

std::string loss_picture(Runs runs) {
  std::string svg = chart_of(runs, kCharts[0]);
  if (svg.empty()) return "";
  svg.insert(svg.find('>') + 1, "\n<style>\n" + drawing_style() + "svg { background: var(--back); }\n</style>");
  return svg.insert(4, " xmlns=\"http://www.w3.org/2000/svg\"");
}

std::string curves_section(Runs runs) {
  std::string charts;
  for (const ChartRow& row : kCharts)
    if (const std::string chart = chart_of(runs, row); !chart.empty()) charts += figure(chart);
  if (charts.empty())
    return absent("No curves: metrics.jsonl, which ranklab train writes, is not there or has no step.");
  bool thinned = false;
  for (const RunFacts& run : runs)
    for (const Curve& curve : run.files.curves)
      thinned = thinned || curve.values > static_cast<int64_t>(curve.points.size());
  return "<div class=\"grid\">\n" + charts + "</div>\n" +
         (thinned
              ? paragraph("A point represents several steps: the line shows their mean, the band their range.", "dim")
              : "");
}

}  // namespace ranklab::viz
