#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "core/base/system.h"
#include "viz/app/application.h"
#include "viz/app/gui_context.h"
#include "viz/app/software_renderer.h"
#include "viz/app/window.h"
#include "viz/model/store/generated_trace.h"

namespace ranklab::viz {
namespace {

constexpr int kWarmUp = 20;

size_t imgui_allocations = 0;

// Zooms in and out while panning, so that every level of detail occurs.
void move_camera(Workspace& workspace, int frame, int frames) {
  const TimeRange whole = workspace.store().range();
  const double turn = 2.0 * frame / frames;
  const double depth = turn < 1 ? turn : 2 - turn;  // 0 .. 1 .. 0
  const double length = static_cast<double>(whole.length_ns()) * std::pow(10.0, -5 * depth);
  const double left = (static_cast<double>(whole.length_ns()) - length) * frame / frames;
  workspace.camera = {left, left + length};
}

}  // namespace

VizFrameTimes bench_viz_frames(size_t events, int frames) {
  ImGui::SetAllocatorFunctions(
      [](size_t size, void*) {
        ++imgui_allocations;
        return std::malloc(size);
      },
      [](void* pointer, void*) { std::free(pointer); });
  GuiContext gui("", 1);
  start_software_renderer();
  VizFrameTimes result;
  {
    Application app;
    app.workspace().load(TraceStore(generated_trace(static_cast<int64_t>(events)), "generated"));
    app.use_layout("Pipeline");
    result.events = app.workspace().store().num_events();
    ImGui::GetIO().DisplaySize = {1600, 900};
    ImGui::GetIO().DeltaTime = 1.f / 60;
    std::vector<double> milliseconds;
    size_t before = 0;
    for (int frame = -kWarmUp; frame < frames; ++frame) {
      if (frame == 0) before = imgui_allocations;
      move_camera(app.workspace(), std::abs(frame), frames);
      const double start = cpu_time_ms(CpuTime::kThread);
      ImGui::NewFrame();
      app.frame(0);
      ImGui::Render();
      const double taken = cpu_time_ms(CpuTime::kThread) - start;
      render_software(*ImGui::GetDrawData(), nullptr, 0);  // only answers texture requests
      result.vertices = std::max(result.vertices, static_cast<size_t>(ImGui::GetDrawData()->TotalVtxCount));
      if (frame >= 0) milliseconds.push_back(taken);
    }
    result.allocations = imgui_allocations - before;
    std::sort(milliseconds.begin(), milliseconds.end());
    result.frames = frames;
    result.median_ms = milliseconds[milliseconds.size() / 2];
    result.p99_ms = milliseconds[milliseconds.size() * 99 / 100];
    result.longest_ms = milliseconds.back();
  }
  stop_software_renderer();
  return result;
}

}  // namespace ranklab::viz
