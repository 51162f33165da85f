#include "viz/panels/parts/plots.h"

#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {
namespace {

constexpr int kMostTicks = 8;

int format_time_tick(double value, char* out, int size, void* workspace) {
  const auto& shown = *static_cast<const Workspace*>(workspace);
  const auto least_step = axis_step_ns(static_cast<int64_t>(shown.camera.length_ns()), 2 * kMostTicks);
  return std::snprintf(
      out, static_cast<size_t>(size), "%s",
      tick_text(shown.store(), std::llround(value) - shown.store().range().begin_ns, least_step).c_str());
}

}  // namespace

void setup_time_axis(Workspace& workspace) {
  ImPlot::SetupAxis(ImAxis_X1);
  ImPlot::SetupAxisLinks(ImAxis_X1, &workspace.camera.begin_ns, &workspace.camera.end_ns);
  ImPlot::SetupAxisFormat(ImAxis_X1, format_time_tick, &workspace);
}

void draw_time_cursor(const Workspace& workspace) {
  const double at = static_cast<double>(workspace.cursor.time_ns);
  ImPlotSpec spec;
  spec.LineColor = plot_color(theme::kCursor);
  spec.Flags = ImPlotItemFlags_NoFit | ImPlotItemFlags_NoLegend;
  ImPlot::PlotInfLines("##cursor", &at, 1, spec);
}

void setup_bytes_axis(double largest, float height) {
  const double top = std::max(largest, 1.0) * 1.12, line = ImGui::GetTextLineHeightWithSpacing();
  const double ticks_that_fit = std::clamp<double>(height / line - 3, 1, kMostTicks);
  const double step = std::exp2(std::ceil(std::log2(top / ticks_that_fit)));
  std::vector<double> ticks;
  std::vector<std::string> texts;
  std::vector<const char*> labels;
  for (double at = 0; at <= top; at += step) {
    ticks.push_back(at);
    texts.push_back(at == 0 ? "0" : human_bytes(at));
  }
  for (const std::string& text : texts) labels.push_back(text.c_str());
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, top, ImPlotCond_Always);
  ImPlot::SetupAxisTicks(ImAxis_Y1, ticks.data(), static_cast<int>(ticks.size()), labels.data());
}

}  // namespace ranklab::viz
