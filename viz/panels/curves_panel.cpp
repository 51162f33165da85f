#include "viz/panels/curves_panel.h"

#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

// The curves drawn by default, in this order.
constexpr std::string_view kShownFirst[] = {
    "loss", "grad_norm",         "lr",           "step time",           "tokens_per_s",
    "mfu",  "moe/max_over_mean", "moe/aux_loss", "attention/max_logit", "attention/clipped_heads"};

ptrdiff_t place(const std::string& name) {
  return std::find(std::begin(kShownFirst), std::end(kShownFirst), name) - std::begin(kShownFirst);
}

}  // namespace

const std::vector<CurvesPanel::Series>& CurvesPanel::series(Workspace& workspace) {
  const Key key{workspace.content(workspace.store().whole()), smoothing_};
  return series_.get(key, [&] {
    std::vector<Series> all;
    for (Curve& read : all_curves(workspace.store())) {
      const Curve curve = in_shown_unit(std::move(read));
      Series& one = all.emplace_back();
      one.name = curve.name;
      one.unit = curve.unit;
      one.source = curve.source;
      for (const CurvePoint& point : curve.points) {
        one.step.push_back(point.step);
        one.value.push_back(point.value);
        one.low.push_back(point.low);
        one.high.push_back(point.high);
      }
      for (const CurvePoint& point : smoothed(curve.points, static_cast<double>(smoothing_)))
        one.smooth.push_back(point.value);
      for (const int step : curve.bad_steps) one.bad_steps.push_back(step);
      const RunEnd& end = workspace.run_end();
      one.last_step = curve.points.back().step;
      if (!end.failed || end.step <= curve.points.back().step) continue;
      one.bad_steps.push_back(end.step);
      one.last_step = end.step;
    }
    for (const Series& one : all) {
      const bool known = std::find(std::begin(kShownFirst), std::end(kShownFirst), one.name) != std::end(kShownFirst);
      if (!known && hidden_for_ != workspace.loaded()) hidden_.insert(one.name);
    }
    hidden_for_ = workspace.loaded();
    std::stable_sort(all.begin(), all.end(),
                     [](const Series& a, const Series& b) { return place(a.name) < place(b.name); });
    return all;
  });
}

std::string CurvesPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return workspace.why_empty();
  if (series(workspace).empty())
    return "No values over steps: a drawn schedule has none.\n\n./ranklab train --train-iters 50   records loss, step "
           "time, tokens/s ...";
  return {};
}

void CurvesPanel::draw(Workspace& workspace) {
  const std::vector<Series>& all = series(workspace);
  label("smooth over");
  ImGui::SetNextItemWidth(scaled(90));
  ImGui::DragFloat("##smooth", &smoothing_, 0.1f, 0, 50, smoothing_ < 1 ? "no steps" : "%.0f steps",
                   ImGuiSliderFlags_AlwaysClamp);
  tooltip("exponential moving average over about so many steps; the raw curve stays, faintly");
  same_line_if_fits(ImGui::GetFrameHeight() + text_width(" log"));
  ImGui::Checkbox("log", &logarithmic_);
  same_line_if_fits(text_width("curves ...") + 2 * ImGui::GetStyle().FramePadding.x);
  if (ImGui::Button("curves ...")) ImGui::OpenPopup("which");
  if (begin_popup_at_item("which")) {
    for (const Series& one : all) {
      bool shown = !hidden_.contains(one.name);
      if (ImGui::Checkbox(one.name.c_str(), &shown)) {
        if (shown)
          hidden_.erase(one.name);
        else
          hidden_.insert(one.name);
      }
    }
    ImGui::EndPopup();
  }
  if (const RunEnd& end = workspace.run_end(); !end.words.empty()) {
    ImGui::PushTextWrapPos(0);
    colored_text(end.failed ? theme::kBad : theme::kDim, end.words);
    ImGui::PopTextWrapPos();
  }
  std::vector<const Series*> shown;
  for (const Series& one : all)
    if (!hidden_.contains(one.name)) shown.push_back(&one);
  if (shown.empty()) return dim_text("no curve is chosen");
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const int columns = std::clamp(static_cast<int>(space.x / scaled(300)), 1, static_cast<int>(shown.size()));
  const int rows = (static_cast<int>(shown.size()) + columns - 1) / columns;
  const float height = std::max(space.y / static_cast<float>(rows) - scaled(4), scaled(130));
  const float width = (space.x - scaled(14)) / static_cast<float>(columns) - ImGui::GetStyle().ItemSpacing.x;
  if (!ImGui::BeginChild("plots")) return ImGui::EndChild();
  // Makes the number columns of all plots equally wide, so that the same step is at the same place in plots below each
  // other.
  const bool aligned = ImPlot::BeginAlignedPlots("steps");
  for (size_t i = 0; i < shown.size(); ++i) {
    if (i % static_cast<size_t>(columns) != 0) ImGui::SameLine();
    const std::string title = shown[i]->name + (shown[i]->unit.empty() ? "" : " (" + shown[i]->unit + ")");
    if (ImPlot::BeginPlot(title.c_str(), {width, height}, ImPlotFlags_NoLegend)) {
      plot(workspace, *shown[i]);
      ImPlot::EndPlot();
    }
  }
  if (aligned) ImPlot::EndAlignedPlots();
  ImGui::EndChild();
}

void CurvesPanel::setup_axes(const Series& series) {
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  const double first = series.step.front(), last = series.last_step;
  const double side = std::max((last - first) * 0.02, 0.1);
  ImPlot::SetupAxisLimits(ImAxis_X1, first - side, last + side, ImPlotCond_Always);
  const int steps = static_cast<int>(last - first) + 1;
  if (steps <= 12) {
    ImPlot::SetupAxisTicks(ImAxis_X1, first, last, std::max(steps, 2));
    ImPlot::SetupAxisFormat(ImAxis_X1, "%.0f");
  }
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (size_t i = 0; i < series.low.size(); ++i) {
    if (std::isfinite(series.low[i])) low = std::min(low, series.low[i]);
    if (std::isfinite(series.high[i])) high = std::max(high, series.high[i]);
  }
  if (!(low <= high)) low = high = 0;
  const auto [from, to] = axis_limits(low, high);
  const bool logarithmic = logarithmic_ && low > 0;
  ImPlot::SetupAxisLimits(ImAxis_Y1, logarithmic ? low * 0.9 : from, logarithmic ? high * 1.1 : to, ImPlotCond_Always);
  if (logarithmic) ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
}

void CurvesPanel::plot(Workspace& workspace, const Series& series) {
  setup_axes(series);
  const int count = static_cast<int>(series.step.size());
  const ImVec4 color = plot_color(theme::kAccent);
  ImPlotSpec band;
  band.FillColor = color;
  band.FillAlpha = 0.2f;
  ImPlot::PlotShaded("range over ranks", series.step.data(), series.low.data(), series.high.data(), count, band);
  ImPlotSpec raw;
  raw.LineColor = color;
  raw.LineWeight = scaled(1.6f);
  if (smoothing_ >= 1) raw.LineColor.w = 0.35f;
  if (count == 1) raw.Marker = ImPlotMarker_Circle;
  ImPlot::PlotLine("value", series.step.data(), series.value.data(), count, raw);
  if (smoothing_ >= 1) {
    ImPlotSpec smooth;
    smooth.LineColor = color;
    smooth.LineWeight = scaled(2);
    ImPlot::PlotLine("smoothed", series.step.data(), series.smooth.data(), count, smooth);
  }
  ImPlotSpec marks;
  marks.LineColor = plot_color(theme::kBad);
  marks.Flags = ImPlotItemFlags_NoFit;
  if (!series.bad_steps.empty())
    ImPlot::PlotInfLines("not finite, or not reached", series.bad_steps.data(),
                         static_cast<int>(series.bad_steps.size()), marks);
  const double step = workspace.step();
  marks.LineColor = plot_color(theme::kCursor);
  if (step >= 0) ImPlot::PlotInfLines("cursor", &step, 1, marks);
  if (!ImPlot::IsPlotHovered()) return;
  const int near = static_cast<int>(std::lround(ImPlot::GetPlotMousePos().x));
  for (size_t i = 0; i < series.step.size(); ++i) {
    if (static_cast<int>(series.step[i]) != near) continue;
    ImGui::BeginTooltip();
    ImGui::Text("step %d: %.6g %s", near, series.value[i], series.unit.c_str());
    dim_text(strprintf("%.6g to %.6g over ranks; %s", series.low[i], series.high[i], series.source.c_str()));
    ImGui::EndTooltip();
    if (!ImGui::IsMouseClicked(ImGuiMouseButton_Left)) continue;
    if (const auto window = workspace.store().step_window(near)) workspace.set_time(window->range.begin_ns);
  }
}

}  // namespace ranklab::viz
