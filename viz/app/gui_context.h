// The ImGui and ImPlot contexts with our font, theme and settings, for as long as this object lives. Thread rule: one
// at a time.
#pragma once
#include <string>

namespace ranklab::viz {

class GuiContext {
 public:
  // `settings_path`: the file in which the layout is saved; "": it is not saved.
  explicit GuiContext(const std::string& settings_path, float scale);
  ~GuiContext();
  GuiContext(const GuiContext&) = delete;
  GuiContext& operator=(const GuiContext&) = delete;

 private:
  std::string settings_path_;  // ImGui keeps a pointer to it
};

}  // namespace ranklab::viz
