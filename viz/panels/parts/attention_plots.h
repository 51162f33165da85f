// The pictures of the attention panel. Thread rule: the thread of the ImGui context.
#pragma once
#include <imgui.h>

#include "viz/model/tables/attention_table.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

// A grid of chunks of queries by chunks of keys, in the colours of the ranks that compute them; if ranks have whole
// sequences, a triangle for each rank instead. A click shows the event. Fills `size`.
void attention_grid(Workspace& workspace, const AttentionGroup& group, const AttentionUse& use, ImVec2 size);
// The largest width that the grid needs in a space of this height.
float attention_grid_width(const AttentionUse& use, float height);

// A bar for each rank, as long as its work and filled as far as it is done, compared with the mean.
void attention_shares(Workspace& workspace, const AttentionGroup& group, const AttentionUse& use, ImVec2 size);

// Explains full, framed and pale tiles, on the current line.
void attention_legend();

}  // namespace ranklab::viz
