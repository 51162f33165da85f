// The real window under Xvfb, driven by Dear ImGui Test Engine: drive() runs a function as a test of the engine, which
// moves the mouse and presses keys between frames, and fails with what the engine's checks say.
#pragma once
#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include <functional>
#include <memory>
#include <string>

#include "viz/app/gl_window.h"
#include "viz/model/store/trace_store.h"
#include "viz/panels/timeline/timeline_panel.h"
#include "viz/panels/what_if_panel.h"

namespace ranklab::viz {

class WindowTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Application& app() { return window_->application(); }
  Workspace& workspace() { return app().workspace(); }
  TimelinePanel& timeline() { return dynamic_cast<TimelinePanel&>(*app().panel("timeline")); }
  WhatIfPanel& what_if() { return dynamic_cast<WhatIfPanel&>(*app().panel("what_if")); }
  void drive(const std::function<void(ImGuiTestContext&)>& steps);
  // A PNG in the build's folder screenshots/, for people to look at; returns the pixels.
  Image screenshot(const std::string& name);

 private:
  std::unique_ptr<GlWindow> window_;
  ImGuiTestEngine* engine_ = nullptr;
};

}  // namespace ranklab::viz
