#include "viz/app/gl_window.h"

#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "viz/app/settings.h"

namespace ranklab::viz {
namespace {

constexpr double kSleep = 0.5;       // checks for changes at least twice a second
constexpr double kLiveSleep = 0.05;  // for a live run
// ImGui needs some frames to settle after input.
constexpr int kFramesAfterInput = 3;

[[noreturn]] void no_window(const std::string& what, const std::string& got) {
  throw Error(ErrorKind::kEnvironment,
              {.where = "viz window",
               .what = what,
               .got = got,
               .want = "a display with OpenGL 3.3",
               .fix = "without one: ranklab viz TRACE --headless -o out.png, or --format text; from afar: ssh -X"});
}

std::string glfw_complaint() {
  const char* words = nullptr;
  glfwGetError(&words);
  return words != nullptr ? words : "";
}

// Our own few OpenGL calls are loaded through GLFW, because linking libGL would load it for every command.
template <typename Function>
Function gl(const char* name) {
  return reinterpret_cast<Function>(glfwGetProcAddress(name));
}

bool set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

GlWindow::GlWindow(const VizRequest& request, bool keep_layout) : state_(keep_layout ? state_folder() : "") {
  try {
    open(request);
  } catch (...) {
    if (app_ != nullptr || gui_ != nullptr) {
      ImGui_ImplOpenGL3_Shutdown();
      ImGui_ImplGlfw_Shutdown();
    }
    app_.reset();
    gui_.reset();
    if (window_ != nullptr) glfwDestroyWindow(window_);
    glfwTerminate();
    throw;
  }
}

void GlWindow::open(const VizRequest& request) {
  if (!set("DISPLAY") && !set("WAYLAND_DISPLAY"))
    no_window("there is no display", "neither DISPLAY nor WAYLAND_DISPLAY");
  if (glfwInit() == 0) no_window("the display cannot be opened", glfw_complaint());
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  window_ = glfwCreateWindow(request.width > 0 ? request.width : 1600, request.height > 0 ? request.height : 900,
                             "ranklab", nullptr, nullptr);
  if (window_ == nullptr) no_window("no window with OpenGL 3.3 can be made", glfw_complaint());
  glfwMakeContextCurrent(window_);
  glfwSwapInterval(1);
  float monitor_scale = 1;
  glfwGetWindowContentScale(window_, &monitor_scale, nullptr);
  VizRequest scaled_request = request;
  scaled_request.scale = request.scale * std::max(monitor_scale, 1.f);
  gui_ = std::make_unique<GuiContext>(state_.empty() ? "" : state_ + "/window.ini", scaled_request.scale);
  ImGui_ImplGlfw_InitForOpenGL(window_, true);
  ImGui_ImplOpenGL3_Init("#version 330");
  app_ = std::make_unique<Application>();
  app_->start(scaled_request);
  frames_due_ = kFramesAfterInput;
}

GlWindow::~GlWindow() {
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplGlfw_Shutdown();
  app_.reset();
  gui_.reset();
  glfwDestroyWindow(window_);
  glfwTerminate();
}

bool GlWindow::closed() const { return glfwWindowShouldClose(window_) != 0 || app_->wants_to_quit(); }

void GlWindow::turn() {
  if (app_->workspace().playback.state == PlayState::kPlaying || frames_due_ > 0) {
    glfwPollEvents();
    --frames_due_;
  } else {
    const double before = glfwGetTime(), limit = app_->animates() ? kLiveSleep : kSleep;
    glfwWaitEventsTimeout(limit);
    if (glfwGetTime() - before < limit) frames_due_ = kFramesAfterInput;
  }
  show_frame();
}

void GlWindow::show_frame() {
  update();
  draw();
}

void GlWindow::update() {
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  ImGui::NewFrame();
  const double now = glfwGetTime();
  app_->frame(now - last_time_);
  last_time_ = now;
  ImGui::Render();
}

void GlWindow::draw() {
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  const ImVec4 empty = ImGui::GetStyle().Colors[ImGuiCol_DockingEmptyBg];
  gl<decltype(&glViewport)>("glViewport")(0, 0, width, height);
  gl<decltype(&glClearColor)>("glClearColor")(empty.x, empty.y, empty.z, 1);
  gl<decltype(&glClear)>("glClear")(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  const std::string picture = app_->take_picture_request();
  if (!picture.empty()) {
    try {
      write_png(pixels(), picture);
      app_->workspace().log(LogLine::Level::kInfo, "saved " + picture);
    } catch (const Error& error) {
      app_->workspace().log(LogLine::Level::kError, error.what());
    }
  }
  glfwSwapBuffers(window_);
}

Image GlWindow::pixels() const {
  Image image;
  glfwGetFramebufferSize(window_, &image.width, &image.height);
  std::vector<uint32_t> upside_down(size_t(image.width) * size_t(image.height));
  gl<decltype(&glPixelStorei)>("glPixelStorei")(GL_PACK_ALIGNMENT, 1);
  gl<decltype(&glReadPixels)>("glReadPixels")(0, 0, image.width, image.height, GL_RGBA, GL_UNSIGNED_BYTE,
                                              upside_down.data());
  image.rgba.resize(upside_down.size());
  const auto row = static_cast<size_t>(image.width);
  for (size_t y = 0; y < static_cast<size_t>(image.height); ++y) {
    const uint32_t* from = upside_down.data() + (static_cast<size_t>(image.height) - 1 - y) * row;
    std::transform(from, from + row, image.rgba.data() + y * row, [](uint32_t pixel) { return pixel | 0xff000000u; });
  }
  return image;
}

}  // namespace ranklab::viz
