// The plots of the precision panel. Call between ImGui::Begin and End. Thread rule: the thread of the ImGui context.
#pragma once
#include <imgui.h>

#include <cmath>
#include <string>

#include "viz/model/tables/precision_table.h"
#include "viz/model/tables/requantize.h"

namespace ranklab::viz {

// Magnitudes by powers of two, coloured by what happens to them in `format` with the scale of `choice`; above them the
// range of every format with that scale rule (16-bit ones unscaled), its subnormal part hatched, with its estimated
// losses.
void plot_magnitudes(const TensorSample& sample, const FormatRange& format, ScaleChoice choice, ImVec2 size);

enum class PrecisionCurve : uint8_t { kLosses, kSqnr, kScales };
// Curves over the sampled steps with the shown step marked. RETURNS: the step that was clicked, else -1.
int plot_precision_curves(const TensorSeries& series, PrecisionCurve curve, int step, ImVec2 size);

// The smallest and the largest scale of the groups, as powers of 2; low > high if there is none.
struct ScaleExponents {
  double low = INFINITY, high = -INFINITY;
};
ScaleExponents scale_exponents(const TensorSample& sample);
// The scales of the groups; brighter is larger. `chosen` is framed; a click changes it. Hovering describes a group.
void scale_heatmap(const TensorSample& sample, ScaleExponents range, int& chosen, ImVec2 size);
// "group (2, 5): numbers [2:3) x [640:768), scale 1.2e-05, largest 0.0053"
std::string group_text(const TensorSample& sample, int group);

// The largest value over all tensors of a role in all steps.
double largest_underflow(const PrecisionTable& table, TensorRole role);
// What was clicked in the heatmap below; step -1: nothing was clicked.
struct UnderflowPick {
  int step = -1;
  std::string module = {};
};
// Layers in rows, sampled steps in columns; brighter is a larger fraction of numbers that became zero. The shown tensor
// and step is framed.
UnderflowPick underflow_heatmap(const PrecisionTable& table, const TensorSeries& shown, int step, ImVec2 size);

}  // namespace ranklab::viz
