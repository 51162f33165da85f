#include "tests/viz/window/window_fixture.h"

#include <GLFW/glfw3.h>

#include <filesystem>

namespace ranklab::viz {
namespace {

constexpr int kMostFrames = 4000;
constexpr int kFramesForEachDrawn = 50;  // steps act on widgets; pixels are needed for pictures alone

}  // namespace

void WindowTest::SetUp() {
  window_ = std::make_unique<GlWindow>(VizRequest{.width = 1600, .height = 900}, /*keep_layout=*/false);
  engine_ = ImGuiTestEngine_CreateContext();
  ImGuiTestEngineIO& io = ImGuiTestEngine_GetIO(engine_);
  io.ConfigRunSpeed = ImGuiTestRunSpeed_Fast;
  io.ConfigVerboseLevel = ImGuiTestVerboseLevel_Error;
  io.ConfigVerboseLevelOnError = ImGuiTestVerboseLevel_Info;
  io.ConfigLogToTTY = true;
  io.ConfigNoThrottle = true;
  io.ConfigSavedSettings = false;
  ImGuiTestEngine_Start(engine_, ImGui::GetCurrentContext());
}

void WindowTest::TearDown() {
  if (engine_ == nullptr) return;
  ImGuiTestEngine_Stop(engine_);
  window_.reset();
  ImGuiTestEngine_DestroyContext(engine_);
}

void WindowTest::drive(const std::function<void(ImGuiTestContext&)>& steps) {
  ImGuiTest* test = ImGuiTestEngine_RegisterTest(engine_, "window", "steps", __FILE__, __LINE__);
  test->UserData = const_cast<void*>(static_cast<const void*>(&steps));
  test->TestFunc = [](ImGuiTestContext* context) {
    (*static_cast<const std::function<void(ImGuiTestContext&)>*>(context->Test->UserData))(*context);
  };
  for (int i = 0; i < 5; ++i) window_->update();
  ImGuiTestEngine_QueueTest(engine_, test, ImGuiTestRunFlags_None);
  for (int frame = 0; frame < kMostFrames && !ImGuiTestEngine_IsTestQueueEmpty(engine_); ++frame) {
    glfwPollEvents();
    window_->update();
    if (frame % kFramesForEachDrawn == 0) window_->draw();
    ImGuiTestEngine_PostSwap(engine_);
  }
  window_->draw();  // and saves the picture that a step may have asked for
  ASSERT_TRUE(ImGuiTestEngine_IsTestQueueEmpty(engine_)) << "the steps did not end in " << kMostFrames << " frames";
  ImGuiTestEngineResultSummary summary;
  ImGuiTestEngine_GetResultSummary(engine_, &summary);
  EXPECT_EQ(summary.CountSuccess, summary.CountTested) << "see the engine's log above";
  ImGuiTestEngine_UnregisterTest(engine_, test);
}

Image WindowTest::screenshot(const std::string& name) {
  for (int i = 0; i < 3; ++i) window_->update();
  window_->show_frame();
  std::filesystem::create_directories("screenshots");
  Image image = window_->pixels();
  write_png(image, "screenshots/" + name + ".png");
  return image;
}

}  // namespace ranklab::viz
