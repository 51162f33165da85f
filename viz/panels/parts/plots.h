// Shared by plots over time: an axis that moves with the timeline, the cursor, ticks in bytes. Call between
// ImPlot::BeginPlot and EndPlot. Thread rule: the thread of the ImGui context.
#pragma once

namespace ranklab::viz {

class Workspace;

void setup_time_axis(Workspace& workspace);
void draw_time_cursor(const Workspace& workspace);
// The vertical axis from 0, with ticks at multiples of a power of two: so many that the texts fit a plot that is
// `height` pixels high with its title and the other axis.
void setup_bytes_axis(double largest, float height);

}  // namespace ranklab::viz
