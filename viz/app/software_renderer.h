// Draws what Dear ImGui laid out without a display or a GPU: triangles with vertex colours and one bilinear texture, as
// the OpenGL backend does. Coordinates are rounded to 1/256 pixel and edges follow the top-left rule, so the same
// ImDrawData gives the same pixels. Cost: about 20 ns a covered pixel. Thread rule: the thread of the ImGui context.
#pragma once
#include "viz/app/image.h"

struct ImDrawData;

namespace ranklab::viz {

// Textures are read where ImGui keeps them; requests for textures are answered. Call it for every frame that was
// rendered, or pass a null image to answer requests alone.
void render_software(const ImDrawData& data, Image* image, uint32_t background_rgba);

// Claims the renderer's abilities in ImGuiIO. Call once after ImGui::CreateContext().
void start_software_renderer();
// Before ImGui::DestroyContext().
void stop_software_renderer();

}  // namespace ranklab::viz
