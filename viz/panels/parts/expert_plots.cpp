#include "viz/panels/parts/expert_plots.h"

#include <implot.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

constexpr size_t kNamedUpTo = 32;   // experts with a tick of their own
constexpr size_t kCurvesUpTo = 16;  // experts in a legend

void expert_ticks(const std::vector<size_t>& order) {
  if (order.size() > kNamedUpTo) return;
  std::vector<double> at;
  std::vector<std::string> texts;
  std::vector<const char*> labels;
  for (size_t i = 0; i < order.size(); ++i) {
    at.push_back(static_cast<double>(i));
    texts.push_back(std::to_string(order[i]));
  }
  for (const std::string& text : texts) labels.push_back(text.c_str());
  ImPlot::SetupAxisTicks(ImAxis_X1, at.data(), static_cast<int>(at.size()), labels.data());
}

void expert_tooltip(const LayerLoad& load, const std::vector<size_t>& order) {
  if (!ImPlot::IsPlotHovered()) return;
  const auto near = std::lround(ImPlot::GetPlotMousePos().x);
  if (near < 0 || near >= static_cast<long>(order.size())) return;
  const size_t expert = order[static_cast<size_t>(near)];
  ImGui::SetTooltip("expert %zu: %.0f tokens, %.2f of the ideal", expert, load.tokens[expert],
                    load.measures.ratio(load.tokens[expert]));
}

void setup_steps(const std::vector<double>& step) {
  ImPlot::SetupAxis(ImAxis_X1, nullptr, ImPlotAxisFlags_NoHighlight);
  const double first = step.front(), last = step.back(), side = std::max((last - first) * 0.02, 0.1);
  ImPlot::SetupAxisLimits(ImAxis_X1, first - side, last + side, ImPlotCond_Always);
  ImPlot::SetupAxisFormat(ImAxis_X1, "%.0f");
  const int steps = static_cast<int>(last - first) + 1;
  if (steps <= 12) ImPlot::SetupAxisTicks(ImAxis_X1, first, last, std::max(steps, 2));
}

int end_of_step_plot(int step) {
  const double at = step;
  ImPlotSpec cursor;
  cursor.LineColor = plot_color(theme::kCursor);
  cursor.Flags = ImPlotItemFlags_NoFit | ImPlotItemFlags_NoLegend;
  if (step >= 0) ImPlot::PlotInfLines("##cursor", &at, 1, cursor);
  const bool clicked = ImPlot::IsPlotHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left);
  const int chosen = clicked ? static_cast<int>(std::lround(ImPlot::GetPlotMousePos().x)) : -1;
  ImPlot::EndPlot();
  return chosen;
}

ImPlotSpec line(ImU32 color, size_t points, float weight) {
  ImPlotSpec spec;
  spec.LineColor = plot_color(color);
  spec.LineWeight = scaled(weight);
  if (points == 1) spec.Marker = ImPlotMarker_Circle;
  return spec;
}

// Shows the smallest and the largest biases of the step under the mouse.
void bias_tooltip(const LoadHistory& history) {
  if (!ImPlot::IsPlotHovered()) return;
  const double near = std::round(ImPlot::GetPlotMousePos().x);
  for (size_t i = 0; i < history.bias_step.size(); ++i) {
    if (history.bias_step[i] != near) continue;
    std::vector<size_t> order(history.bias.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return history.bias[a][i] > history.bias[b][i]; });
    constexpr size_t kMost = 4;
    std::string words = strprintf("step %.0f", near);
    for (size_t place = 0; place < order.size(); ++place) {
      if (place >= kMost && place + kMost < order.size()) continue;
      words += strprintf("\nexpert %zu: %+.6g", order[place], history.bias[order[place]][i]);
    }
    ImGui::SetTooltip("%s", words.c_str());
  }
}

}  // namespace

void plot_load(const LayerLoad& load, bool sorted, int chosen, ImVec2 size) {
  std::vector<size_t> order(load.tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (sorted)
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return load.tokens[a] > load.tokens[b]; });
  std::vector<double> heights;
  std::vector<ImU32> colors;
  for (const size_t expert : order) {
    heights.push_back(load.tokens[expert]);
    const auto share = static_cast<float>(std::clamp(load.measures.ratio(load.tokens[expert]) / 2, 0.06, 1.0));
    colors.push_back(static_cast<int>(expert) == chosen ? theme::kOutline : heat_colour(share));
  }
  if (!ImPlot::BeginPlot("tokens of each expert", size, ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText)) return;
  const double last = static_cast<double>(order.size()) - 0.4, top = std::max(load.measures.max * 1.15, 1.0);
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoHighlight,
                    ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxesLimits(-0.6, last, 0, top, ImPlotCond_Always);
  expert_ticks(order);
  ImPlotSpec bars;
  bars.FillColors = colors.data();
  bars.LineColors = colors.data();
  ImPlot::PlotBars("tokens", heights.data(), static_cast<int>(heights.size()), 0.78, 0, bars);
  for (size_t i = 0; i < order.size() && order.size() <= kNamedUpTo; ++i) {
    if (heights[i] == 0 && load.measures.sum > 0)
      ImPlot::Annotation(static_cast<double>(i), 0, plot_color(theme::kBad), {0, -4}, true, "dead");
  }
  ImPlotSpec ideal;
  ideal.LineColor = plot_color(theme::kGood);
  ideal.LineWeight = scaled(1.6f);
  ideal.Flags = ImPlotInfLinesFlags_Horizontal;
  ImPlot::PlotInfLines("ideal", &load.measures.ideal, 1, ideal);
  ImPlot::TagY(load.measures.ideal, plot_color(theme::kGood), "ideal");
  expert_tooltip(load, order);
  ImPlot::EndPlot();
}

int plot_balance(const LoadHistory& history, int step, ImVec2 size) {
  if (history.step.empty() || !ImPlot::BeginPlot("balance over steps", size, ImPlotFlags_NoMouseText)) return -1;
  const int count = static_cast<int>(history.step.size());
  setup_steps(history.step);
  double top = 1;
  for (const std::vector<double>* values : {&history.max_ratio, &history.cv})
    top = std::max(top, *std::max_element(values->begin(), values->end()));
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, top * 1.12, ImPlotCond_Always);
  ImPlot::SetupLegend(ImPlotLocation_NorthEast, ImPlotLegendFlags_Outside);
  const size_t points = history.step.size();
  ImPlot::PlotLine("max/mean", history.step.data(), history.max_ratio.data(), count,
                   line(theme::kAccent, points, 1.8f));
  ImPlot::PlotLine("CV", history.step.data(), history.cv.data(), count, line(theme::kCursor, points, 1.8f));
  const double even = 1;
  ImPlotSpec ideal = line(with_alpha(theme::kGood, 150), 2, 1);
  ideal.Flags = static_cast<int>(ImPlotInfLinesFlags_Horizontal) | static_cast<int>(ImPlotItemFlags_NoLegend);
  ImPlot::PlotInfLines("##even", &even, 1, ideal);
  if (ImPlot::IsPlotHovered()) {
    const double near = std::round(ImPlot::GetPlotMousePos().x);
    for (size_t i = 0; i < points; ++i) {
      if (history.step[i] == near)
        ImGui::SetTooltip("step %.0f: max/mean %.3f, CV %.3f, %.0f dropped", near, history.max_ratio[i], history.cv[i],
                          history.dropped[i]);
    }
  }
  return end_of_step_plot(step);
}

int plot_bias(const LoadHistory& history, int step, int chosen, ImVec2 size) {
  // Shows a legend if the plot has space for it; the tooltip names the other experts.
  const float needed = ImGui::GetTextLineHeightWithSpacing() * (static_cast<float>(history.bias.size()) + 2);
  const bool legend = history.bias.size() <= kCurvesUpTo && needed < size.y;
  if (history.bias_step.empty() || !ImPlot::BeginPlot("router bias of each expert", size,
                                                      ImPlotFlags_NoMouseText | (legend ? 0 : ImPlotFlags_NoLegend)))
    return -1;
  setup_steps(history.bias_step);
  double low = 0, high = 0;
  for (const std::vector<double>& curve : history.bias) {
    low = std::min(low, *std::min_element(curve.begin(), curve.end()));
    high = std::max(high, *std::max_element(curve.begin(), curve.end()));
  }
  const double pad = std::max((high - low) * 0.08, 1e-6);
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisLimits(ImAxis_Y1, low - pad, high + pad, ImPlotCond_Always);
  ImPlot::SetupLegend(ImPlotLocation_NorthWest, ImPlotLegendFlags_Outside);
  for (size_t expert = 0; expert < history.bias.size(); ++expert) {
    const bool picked = static_cast<int>(expert) == chosen;
    const ImVec4 color = ImPlot::GetColormapColor(static_cast<int>(expert), ImPlotColormap_Paired);
    ImPlotSpec spec = line(picked ? theme::kOutline : ImGui::ColorConvertFloat4ToU32(color), history.bias_step.size(),
                           picked ? 2.6f : 1.4f);
    ImPlot::PlotLine(std::to_string(expert).c_str(), history.bias_step.data(), history.bias[expert].data(),
                     static_cast<int>(history.bias_step.size()), spec);
  }
  bias_tooltip(history);
  return end_of_step_plot(step);
}

}  // namespace ranklab::viz
