// Renders Dear ImGui's draw lists without a display or a GPU: triangles with vertex colours and one bilinear texture,
// as the OpenGL backend does. Coordinates are rounded to 1/256 pixel and edges follow the top-left rule, so the same
// ImDrawData gives the same pixels. Cost: about 20 ns per covered pixel. Thread rule: the thread of the ImGui context.
#pragma once
#include "viz/app/image.h"

struct ImDrawData;

namespace ranklab::viz {

// Reads textures from ImGui's memory and answers its texture requests. Call it for every rendered frame; with a null
// image it only answers the requests.
void render_software(const ImDrawData& data, Image* image, uint32_t background_rgba);

// Declares the renderer's features in ImGuiIO. Call once after ImGui::CreateContext().
void start_software_renderer();
// Call before ImGui::DestroyContext().
void stop_software_renderer();

// Calls both for as long as this object lives.
class SoftwareRenderer {
 public:
  SoftwareRenderer() { start_software_renderer(); }
  ~SoftwareRenderer() { stop_software_renderer(); }
  SoftwareRenderer(const SoftwareRenderer&) = delete;
  SoftwareRenderer& operator=(const SoftwareRenderer&) = delete;
};

}  // namespace ranklab::viz
