#include <cstdlib>
#include <filesystem>

#include "cli/doctor/doctor_checks.h"
#include "core/base/system.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using Status = DoctorLine::Status;

int count_fonts(const fs::path& folder) {
  int count = 0;
  std::error_code unreadable;
  for (fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, unreadable), end;
       !unreadable && it != end && count < 10000; it.increment(unreadable)) {
    const std::string extension = it->path().extension().string();
    count += extension == ".ttf" || extension == ".otf" || extension == ".ttc" ? 1 : 0;
  }
  return count;
}

}  // namespace

DoctorLine check_opengl() {
  const std::string gl = find_library("libGL.so.1");
  const std::string glfw = find_library("libglfw.so.3");
  if (gl.empty())
    return {Status::kMissing, "OpenGL", "no libGL.so.1; needed for windows", "sudo apt-get install libgl1"};
  if (glfw.empty()) return {Status::kWarn, "OpenGL", gl + ", no libglfw.so.3", "sudo apt-get install libglfw3"};
  return {Status::kOk, "OpenGL", gl + ", " + glfw};
}

DoctorLine check_display() {
  const std::string wayland = environment_variable("WAYLAND_DISPLAY"), x11 = environment_variable("DISPLAY");
  if (!wayland.empty()) return {Status::kOk, "display", "Wayland, WAYLAND_DISPLAY=" + wayland};
  if (!x11.empty()) return {Status::kOk, "display", "X11, DISPLAY=" + x11};
  const std::string virtual_x = find_on_path("xvfb-run");
  if (!virtual_x.empty()) {
    return {Status::kWarn, "display", "none; a virtual one is at " + virtual_x,
            "ssh -X; or ranklab viz --headless and --format text, which need none"};
  }
  return {Status::kMissing, "display", "neither DISPLAY nor WAYLAND_DISPLAY is set; needed for windows",
          "ssh -X, or sudo apt-get install xvfb"};
}

DoctorLine check_fonts() {
  int count = count_fonts("/usr/share/fonts") + count_fonts("/usr/local/share/fonts");
  const std::string home = environment_variable("HOME");
  if (!home.empty()) count += count_fonts(home + "/.local/share/fonts") + count_fonts(home + "/.fonts");
  if (count > 0) return {Status::kOk, "fonts", std::to_string(count) + " font files"};
  return {Status::kMissing, "fonts", "none; windows fall back to a built-in bitmap font",
          "sudo apt-get install fonts-dejavu-core"};
}

}  // namespace ranklab
