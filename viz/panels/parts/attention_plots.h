// The pictures of the attention panel. Thread rule: the thread of the ImGui context.
#pragma once
#include <imgui.h>

#include "viz/model/tables/attention_table.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

// Chunks of queries by chunks of keys, in the colour of the rank that computes them; with whole sequences a triangle
// for each rank instead. A click goes to the event. Fills `size`.
void attention_grid(Workspace& workspace, const AttentionGroup& group, const AttentionUse& use, ImVec2 size);
// The width that it needs, at most, of a space that high.
float attention_grid_width(const AttentionUse& use, float height);

// A bar for each rank as long as its work, filled as far as it is done, beside the mean.
void attention_shares(Workspace& workspace, const AttentionGroup& group, const AttentionUse& use, ImVec2 size);

// What full, framed and pale tiles are, on the line.
void attention_legend();

}  // namespace ranklab::viz
