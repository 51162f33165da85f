// Compile-time configuration of Dear ImGui, used by its sources and ours (IMGUI_USER_CONFIG). A million events and
// ImPlot's heat maps need 32-bit draw indices; an assertion is an internal error that main() reports, in every build.
#pragma once

namespace ranklab::viz {
[[noreturn]] void imgui_assertion_failed(const char* expression, const char* file, int line);
}  // namespace ranklab::viz

#define ImDrawIdx unsigned int
#define IM_ASSERT(condition) \
  ((condition) ? (void)0 : ::ranklab::viz::imgui_assertion_failed(#condition, __FILE__, __LINE__))
#define IMGUI_DISABLE_OBSOLETE_FUNCTIONS
