// Drawing the timeline's blocks allocates nothing once its buffers have grown: every call of operator new in this
// program is counted.
#include <gtest/gtest.h>
#include <imgui.h>

#include <cstdlib>
#include <new>

#include "tests/viz/window/sample_traces.h"
#include "viz/app/gui_context.h"
#include "viz/app/software_renderer.h"
#include "viz/panels/parts/workspace.h"
#include "viz/panels/timeline/draw_rows.h"

namespace {
size_t allocations = 0;
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace ranklab::viz {
namespace {

TEST(TimelineAllocations, none_once_it_is_warm) {
  GuiContext gui("", 1);
  start_software_renderer();
  ImGui::GetIO().DisplaySize = {1600, 900};
  Workspace workspace;
  workspace.load(TraceStore(one_f_one_b()));
  const BubbleReport& bubbles = workspace.bubbles_of_trace();
  RowPainter painter;
  TimelineLayout layout;
  size_t in_drawing = 0, drawn = 0;
  for (int frame = 0; frame < 60; ++frame) {
    workspace.camera.show({0, 117'000'000 / (1 + frame % 20)}, 0.01);
    ImGui::NewFrame();
    ImGui::Begin("timeline");
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const size_t before = allocations;
    lay_out_columns(layout, workspace.camera, {0, 0}, 1600);
    lay_out_rows(layout, workspace, 0, 800);
    painter.draw_bubbles(draw, layout, bubbles, 0, 800);
    painter.draw_blocks(draw, layout, workspace.store(), 0, 800);
    painter.draw_stalls(draw, layout, bubbles, 0, 800);
    if (frame >= 20) in_drawing += allocations - before;
    drawn += painter.blocks();
    ImGui::End();
    ImGui::Render();
    render_software(*ImGui::GetDrawData(), nullptr, 0);
  }
  stop_software_renderer();
  EXPECT_EQ(in_drawing, 0u);
  EXPECT_GT(drawn, 60u * 20u);
  EXPECT_GT(allocations, 100u);  // the counter counts
}

}  // namespace
}  // namespace ranklab::viz
