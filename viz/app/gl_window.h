// The window on the screen: GLFW, OpenGL 3.3, Dear ImGui's backends, and the application in it. It sleeps while nothing
// happens. The window's test drives the same object. Thread rule: the main thread.
#pragma once
#include <memory>
#include <string>

#include "viz/app/application.h"
#include "viz/app/gui_context.h"
#include "viz/app/image.h"
#include "viz/app/window.h"

struct GLFWwindow;

namespace ranklab::viz {

class GlWindow {
 public:
  // Throws kEnvironment if there is no display or no OpenGL 3.3, and what Application::start() throws. `keep_layout`:
  // save the layout in the state folder between runs.
  explicit GlWindow(const VizRequest& request, bool keep_layout = true);
  ~GlWindow();
  GlWindow(const GlWindow&) = delete;
  GlWindow& operator=(const GlWindow&) = delete;

  bool closed() const;
  // If nothing moves, waits for input; then shows a frame.
  void turn();
  // Shows a frame at once: handles pending events and draws the result.
  void show_frame();
  void update();
  void draw();

  Application& application() { return *app_; }
  Image pixels() const;  // of the last frame shown

 private:
  void open(const VizRequest& request);

  GLFWwindow* window_ = nullptr;
  std::unique_ptr<GuiContext> gui_;
  std::unique_ptr<Application> app_;
  std::string state_;
  double last_time_ = 0;
  int frames_due_ = 0;
};

}  // namespace ranklab::viz
