// Helpers for plots over time: an axis that moves with the timeline, the cursor, ticks in bytes. Call between
// ImPlot::BeginPlot and EndPlot. Thread rule: the thread of the ImGui context.
#pragma once

namespace ranklab::viz {

class Workspace;

void setup_time_axis(Workspace& workspace);
void draw_time_cursor(const Workspace& workspace);
// The vertical axis from 0, with ticks at multiples of a power of two: as many as fit, with their texts, into a plot
// that is `height` pixels high including its title and the other axis.
void setup_bytes_axis(double largest, float height);

}  // namespace ranklab::viz
