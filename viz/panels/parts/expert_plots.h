// The plots of the experts' panel. Call between ImGui::Begin and End. Thread rule: the thread of the ImGui context.
#pragma once
#include <imgui.h>

#include "viz/model/tables/expert_load.h"

namespace ranklab::viz {

// Bars, one per expert, with the ideal as a line; `chosen` (-1: none) is highlighted. `sorted`: the expert with the
// most tokens comes first.
void plot_load(const LayerLoad& load, bool sorted, int chosen, ImVec2 size);
// max/mean and CV over steps, with the cursor's step. RETURNS: the step that was clicked, else -1.
int plot_balance(const LoadHistory& history, int step, ImVec2 size);
// A curve per expert; the selected one is highlighted. RETURNS: the step that was clicked, else -1.
int plot_bias(const LoadHistory& history, int step, int chosen, ImVec2 size);

}  // namespace ranklab::viz
