#include "viz/panels/parts/precision_plots.h"

#include <implot.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

const ImU32 &kSubnormal = theme::kCursor, &kKept = theme::kAccent, &kLost = theme::kBad, &kBeyond = theme::kCritical;

// 16-bit formats are used without scaling.
RequantizeEstimate estimate_for(const TensorSample& sample, const FormatRange& format, ScaleChoice choice) {
  const bool wide = 1 + format.exponent_bits + format.mantissa_bits > 8;
  return requantize(sample, format, wide ? ScaleChoice::kNone : choice);
}

struct Magnitudes {
  std::vector<double> at, share;  // fraction of nonzero numbers, by the middle of their bin
  double first = 0, last = 1, top = 0;
};

Magnitudes magnitudes_of(const TensorSample& sample) {
  Magnitudes m;
  double sum = 0;
  for (const double count : sample.histogram) sum += count;
  for (size_t bin = 0; bin < kPrecisionBins; ++bin) {
    if (sample.histogram[bin] <= 0) continue;
    m.at.push_back(kPrecisionFirstBin + static_cast<double>(bin) + 0.5);
    m.share.push_back(sample.histogram[bin] / sum);
    m.top = std::max(m.top, m.share.back());
  }
  if (m.at.empty()) return m;
  m.first = m.at.front() - 0.5;
  m.last = m.at.back() + 0.5;
  return m;
}

ImU32 fate(double log2_magnitude, const FormatRange& format, double scale) {
  const double scaled_number = std::exp2(log2_magnitude) / scale;
  if (scaled_number <= format.smallest / 2) return kLost;
  if (scaled_number > format.largest) return kBeyond;
  return scaled_number < format.smallest_normal ? kSubnormal : kKept;
}

// A bar from the smallest to the largest number of a format, with its name and its estimated losses.
void draw_range(const FormatRange& format, const RequantizeEstimate& estimate, ImVec2 from, ImVec2 to, bool chosen) {
  ImDrawList& draw = *ImPlot::GetPlotDrawList();
  const auto x = [&](double number) {
    const double log2_number = std::clamp(std::log2(number * estimate.scale), -200.0, 200.0);
    return std::clamp(ImPlot::PlotToPixels(log2_number, 0).x, from.x, to.x);
  };
  const float lowest = x(format.smallest), normal = x(format.smallest_normal), largest = x(format.largest);
  const ImU32 color = with_alpha(chosen ? kKept : theme::kDim, chosen ? 230 : 130);
  draw.AddRectFilled({normal, from.y}, {largest, to.y}, color, 2);
  draw.AddRect({lowest, from.y}, {normal, to.y}, color, 2);
  if (normal - lowest > 2) hatch(draw, {lowest, from.y}, {normal, to.y}, color, scaled(5));
  const std::string words = std::string(format.name) + strprintf("   %.2f %% to 0", 100 * estimate.underflow_share) +
                            (std::isfinite(estimate.sqnr_db) ? strprintf(", %.1f dB", estimate.sqnr_db) : "");
  const float width = ImGui::CalcTextSize(words.c_str()).x, pad = scaled(3);
  draw.AddRectFilled(from, {from.x + width + 3 * pad, to.y}, with_alpha(theme::kField, 205));
  draw.AddText({from.x + pad, from.y + (to.y - from.y - ImGui::GetTextLineHeight()) / 2},
               chosen ? theme::kAccent : theme::kText, words.c_str());
}

void bin_tooltip(const TensorSample& sample) {
  if (!ImPlot::IsPlotHovered()) return;
  const double exponent = std::floor(ImPlot::GetPlotMousePos().x);
  const auto bin = static_cast<long>(exponent) - kPrecisionFirstBin;
  if (bin < 0 || bin >= static_cast<long>(kPrecisionBins)) return;
  const double count = sample.histogram[static_cast<size_t>(bin)];
  ImGui::SetTooltip("2^%.0f to 2^%.0f: %.0f numbers, %.3f %% of those that are not zero", exponent, exponent + 1, count,
                    sample.nonzero > 0 ? 100 * count / sample.nonzero : 0);
}

std::vector<double> values_of(const TensorSeries& series, double (*value)(const TensorSample&)) {
  std::vector<double> values;
  for (const TensorSample& sample : series.samples) values.push_back(value(sample));
  return values;
}

struct SampleCurve {
  const char* name;
  ImU32 color;
  double (*value)(const TensorSample&);
};

std::vector<SampleCurve> curves_of(PrecisionCurve which) {
  switch (which) {
    case PrecisionCurve::kLosses:
      return {{"underflow %", kLost, [](const TensorSample& s) { return 100 * s.underflow_share(); }},
              {"saturated %", kSubnormal, [](const TensorSample& s) { return 100 * s.saturated_share(); }}};
    case PrecisionCurve::kSqnr:
      return {
          {"SQNR, dB", kKept, [](const TensorSample& s) { return std::isfinite(s.sqnr_db()) ? s.sqnr_db() : NAN; }}};
    case PrecisionCurve::kScales:
      return {{"amax", kKept, [](const TensorSample& s) { return std::isfinite(s.amax) ? s.amax : NAN; }},
              {"largest scale", theme::kGood, [](const TensorSample& s) { return s.scale_max; }},
              {"smallest scale", theme::kDim, [](const TensorSample& s) { return s.scale_min; }}};
  }
  return {};
}

// The rectangle of cells, and which of them the mouse is over.
struct Cells {
  ImVec2 from, cell;
  size_t rows = 0, cols = 0;

  ImVec2 corner(size_t row, size_t col) const {
    return {from.x + cell.x * static_cast<float>(col), from.y + cell.y * static_cast<float>(row)};
  }
  void fill(size_t row, size_t col, float heat) const {
    const ImVec2 at = corner(row, col);
    const float gap_x = cell.x > 5 ? 1 : 0, gap_y = cell.y > 5 ? 1 : 0;
    ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + cell.x - gap_x, at.y + cell.y - gap_y}, heat_colour(heat));
  }
  void frame(size_t row, size_t col) const {
    const ImVec2 at = corner(row, col);
    ImGui::GetWindowDrawList()->AddRect(at, {at.x + cell.x, at.y + cell.y}, theme::kText, 0, scaled(1.5f));
  }
  // RETURNS: -1 if the mouse is over none.
  int hovered() const {
    if (!ImGui::IsItemHovered()) return -1;
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const float x = (mouse.x - from.x) / cell.x, y = (mouse.y - from.y) / cell.y;
    if (x < 0 || y < 0 || x >= static_cast<float>(cols) || y >= static_cast<float>(rows)) return -1;
    return static_cast<int>(static_cast<size_t>(y) * cols + static_cast<size_t>(x));
  }
};

}  // namespace

void plot_magnitudes(const TensorSample& sample, const FormatRange& format, ScaleChoice choice, ImVec2 size) {
  constexpr double kBarsPart = 0.55;  // of the height; the bars of formats are above
  const Magnitudes m = magnitudes_of(sample);
  const double scale = estimate_for(sample, format, choice).scale;
  const float width = std::max(size.x > 0 ? size.x : ImGui::GetContentRegionAvail().x, 1.f);
  if (!ImPlot::BeginPlot("magnitudes, log2", size, ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText)) return;
  const auto edge = [&](double number) { return std::clamp(std::log2(number * scale), -48.0, 40.0); };
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoHighlight,
                    ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoTickLabels | ImPlotAxisFlags_NoGridLines);
  const double low = std::min(m.first, edge(format.smallest)) - 2, high = std::max(m.last, edge(format.largest)) + 2;
  // Leaves space for the labels on the left.
  const double words =
      std::min(0.5, static_cast<double>(ImGui::CalcTextSize("BF16   00.00 % to 0, 00.0 dB").x / width));
  ImPlot::SetupAxesLimits(high - (high - low) / (1 - words), high, 0, std::max(m.top, 1e-9) / kBarsPart,
                          ImPlotCond_Always);
  ImPlot::SetupFinish();
  std::vector<ImU32> colors;
  for (const double at : m.at) colors.push_back(fate(at, format, scale));
  ImPlotSpec bars;
  bars.FillColors = colors.data();
  bars.LineColors = colors.data();
  if (!m.at.empty()) ImPlot::PlotBars("share", m.at.data(), m.share.data(), static_cast<int>(m.at.size()), 0.92, bars);
  const ImVec2 corner = ImPlot::GetPlotPos(), room = ImPlot::GetPlotSize();
  const auto formats = format_ranges();
  const float each =
      room.y * static_cast<float>(1 - kBarsPart) * 0.9f / static_cast<float>(std::max<size_t>(formats.size(), 1));
  ImPlot::PushPlotClipRect();
  for (size_t i = 0; i < formats.size(); ++i) {
    const float top = corner.y + scaled(3) + each * static_cast<float>(i);
    draw_range(formats[i], estimate_for(sample, formats[i], choice), {corner.x, top},
               {corner.x + room.x, top + each - scaled(3)}, formats[i].name == format.name);
  }
  ImPlot::PopPlotClipRect();
  const double saturation = edge(format.largest);
  ImPlotSpec line;
  line.LineColor = plot_color(kBeyond);
  line.LineWeight = scaled(1.6f);
  ImPlot::PlotInfLines("largest", &saturation, 1, line);
  bin_tooltip(sample);
  ImPlot::EndPlot();
}

int plot_precision_curves(const TensorSeries& series, PrecisionCurve which, int step, ImVec2 size) {
  if (series.samples.empty() || !ImPlot::BeginPlot("over sampled steps", size, ImPlotFlags_NoMouseText)) return -1;
  const std::vector<double> steps = values_of(series, [](const TensorSample& s) { return double{1} * s.step; });
  const bool fits_itself = which != PrecisionCurve::kLosses;
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoHighlight,
                    ImPlotAxisFlags_NoHighlight | (fits_itself ? ImPlotAxisFlags_AutoFit : 0));
  const double side = std::max((steps.back() - steps.front()) * 0.03, 0.4);
  ImPlot::SetupAxisLimits(ImAxis_X1, steps.front() - side, steps.back() + side, ImPlotCond_Always);
  ImPlot::SetupAxisFormat(ImAxis_X1, "%.0f");
  if (which == PrecisionCurve::kLosses) {
    double most = 0;
    for (const TensorSample& sample : series.samples)
      most = std::max({most, 100 * sample.underflow_share(), 100 * sample.saturated_share()});
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0, most > 0 ? most * 1.15 : 1, ImPlotCond_Always);
  }
  if (steps.size() <= 10) ImPlot::SetupAxisTicks(ImAxis_X1, steps.data(), static_cast<int>(steps.size()));
  if (which == PrecisionCurve::kScales) ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  ImPlot::SetupLegend(ImPlotLocation_NorthEast, ImPlotLegendFlags_Outside);
  for (const SampleCurve& curve : curves_of(which)) {
    const std::vector<double> values = values_of(series, curve.value);
    ImPlotSpec spec;
    spec.LineColor = plot_color(curve.color);
    spec.LineWeight = scaled(1.8f);
    spec.Marker = ImPlotMarker_Circle;
    ImPlot::PlotLine(curve.name, steps.data(), values.data(), static_cast<int>(steps.size()), spec);
  }
  const double at = step;
  ImPlotSpec cursor;
  cursor.LineColor = plot_color(theme::kCursor);
  cursor.Flags = static_cast<int>(ImPlotItemFlags_NoFit) | static_cast<int>(ImPlotItemFlags_NoLegend);
  ImPlot::PlotInfLines("##cursor", &at, 1, cursor);
  const bool clicked = ImPlot::IsPlotHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left);
  const int chosen = clicked ? static_cast<int>(std::lround(ImPlot::GetPlotMousePos().x)) : -1;
  ImPlot::EndPlot();
  return chosen;
}

std::string group_text(const TensorSample& sample, int group) {
  const ScaleGrid& grid = sample.scales;
  if (group < 0 || static_cast<size_t>(group) >= grid.values.size()) return {};
  const auto row = static_cast<int64_t>(static_cast<size_t>(group) / grid.cols);
  const auto col = static_cast<int64_t>(static_cast<size_t>(group) % grid.cols);
  const double scale = grid.values[static_cast<size_t>(group)];
  const auto range = [](int64_t index, int64_t each, int64_t whole) {
    const int64_t begin = std::min(whole, index * each);
    return strprintf("[%ld:%ld)", static_cast<long>(begin), static_cast<long>(std::min(whole, begin + each)));
  };
  std::string text = strprintf("group (%ld, %ld): numbers ", static_cast<long>(row), static_cast<long>(col)) +
                     range(row, sample.group_rows, sample.rows) + " x " + range(col, sample.group_cols, sample.cols) +
                     strprintf(", scale %.4g", scale);
  if (const FormatRange* format = sample.format()) text += strprintf(", reaches %.4g", scale * format->largest);
  return text;
}

ScaleExponents scale_exponents(const TensorSample& sample) {
  ScaleExponents range;
  for (const double scale : sample.scales.values) {
    if (!(scale > 0) || !std::isfinite(scale)) continue;
    range.low = std::min(range.low, std::log2(scale));
    range.high = std::max(range.high, std::log2(scale));
  }
  return range;
}

void scale_heatmap(const TensorSample& sample, ScaleExponents range, int& chosen, ImVec2 size) {
  const ScaleGrid& grid = sample.scales;
  if (grid.values.empty() || grid.rows == 0 || grid.cols == 0) return dim_text("no scales of groups in the trace");
  const Cells cells{ImGui::GetCursorScreenPos(),
                    {std::max(size.x, 1.f) / static_cast<float>(grid.cols),
                     std::min(std::max(size.y, 1.f) / static_cast<float>(grid.rows), scaled(40))},
                    grid.rows,
                    grid.cols};
  const bool clicked = ImGui::InvisibleButton("scales", {std::max(size.x, 1.f), std::max(size.y, 1.f)});
  for (size_t i = 0; i < grid.values.size(); ++i) {
    const double scale = grid.values[i], length = range.high - range.low;
    const double heat = scale > 0 && length > 0 ? (std::log2(scale) - range.low) / length : 0.5;
    cells.fill(i / grid.cols, i % grid.cols, static_cast<float>(std::isfinite(heat) ? std::clamp(heat, 0.0, 1.0) : 1));
  }
  if (chosen >= 0 && static_cast<size_t>(chosen) < grid.values.size())
    cells.frame(static_cast<size_t>(chosen) / grid.cols, static_cast<size_t>(chosen) % grid.cols);
  const int here = cells.hovered();
  if (here < 0) return;
  ImGui::SetTooltip("%s", group_text(sample, here).c_str());
  if (clicked) chosen = here == chosen ? -1 : here;
}

double largest_underflow(const PrecisionTable& table, TensorRole role) {
  double most = 0;
  for (const TensorSeries& series : table.tensors) {
    for (const TensorSample& sample : series.samples)
      most = std::max(most, series.role == role ? sample.underflow_share() : 0);
  }
  return most;
}

UnderflowPick underflow_heatmap(const PrecisionTable& table, const TensorSeries& shown, int step, ImVec2 size) {
  std::vector<const TensorSeries*> rows;
  const double most = std::max(largest_underflow(table, shown.role), 1e-9);
  float label = 0;
  for (const TensorSeries& series : table.tensors) {
    if (series.role != shown.role) continue;
    rows.push_back(&series);
    label = std::max(label, ImGui::CalcTextSize(series.module.c_str()).x + scaled(8));
  }
  const float line = ImGui::GetTextLineHeight();
  label = std::min(label, size.x * 0.45f);
  // Rows are as high as their names; the user scrolls to those that do not fit.
  const float high = std::clamp((size.y - line) / static_cast<float>(rows.size()), line * 0.86f, scaled(26));
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const Cells cells{
      {corner.x + label, corner.y + line},
      {std::max(size.x - label - ImGui::GetStyle().ScrollbarSize, 1.f) / static_cast<float>(table.steps.size()), high},
      rows.size(),
      table.steps.size()};
  const bool clicked = ImGui::InvisibleButton("underflow", {std::max(size.x - ImGui::GetStyle().ScrollbarSize, 1.f),
                                                            line + high * static_cast<float>(rows.size())});
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (size_t col = 0; col < cells.cols; ++col)
    centred_text(draw, {cells.corner(0, col).x, corner.y}, {cells.cell.x, line}, theme::kDim,
                 std::to_string(table.steps[col]), 0.9f);
  for (size_t row = 0; row < rows.size(); ++row) {
    const ImVec2 at = cells.corner(row, 0);
    draw.PushClipRect({corner.x, at.y}, {at.x - scaled(4), at.y + cells.cell.y}, true);
    const bool here = rows[row]->module == shown.module;
    draw.AddText({corner.x, at.y + (cells.cell.y - line) / 2}, here ? theme::kText : theme::kDim,
                 rows[row]->module.c_str());
    draw.PopClipRect();
    for (const TensorSample& sample : rows[row]->samples) {
      const auto found = std::lower_bound(table.steps.begin(), table.steps.end(), sample.step);
      const auto col = static_cast<size_t>(found - table.steps.begin());
      cells.fill(row, col, static_cast<float>(sample.underflow_share() / most));
      if (here && sample.step == step) cells.frame(row, col);
    }
  }
  const int over = cells.hovered();
  if (over < 0) return {};
  const TensorSeries& series = *rows[static_cast<size_t>(over) / cells.cols];
  const int over_step = table.steps[static_cast<size_t>(over) % cells.cols];
  const TensorSample* sample = series.at(over_step);
  if (sample == nullptr || sample->step != over_step) return {};
  ImGui::SetTooltip("%s, step %d: %.3f %% became zero, %.3f %% saturated", series.module.c_str(), over_step,
                    100 * sample->underflow_share(), 100 * sample->saturated_share());
  return clicked ? UnderflowPick{over_step, series.module} : UnderflowPick{};
}

}  // namespace ranklab::viz
