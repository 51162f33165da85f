// A panel is one file and one row in panel_list.cpp: a dockable window that shows one aspect of the workspace. It
// stores its own choices (sorting, modes), but all numbers are computed by viz/model. Thread rule: the window's thread.
#pragma once
#include <memory>
#include <span>
#include <string>

namespace ranklab::viz {

class Workspace;

class Panel {
 public:
  virtual ~Panel() = default;
  // Called between ImGui::Begin and End of its window.
  virtual void draw(Workspace& workspace) = 0;
  // Called every frame, whether the panel is shown or not. RETURNS: true if it has work in progress and must be called
  // again soon.
  virtual bool advance(Workspace&) { return false; }
  // Why there is nothing to show and which command would change that; "" if there is something.
  virtual std::string nothing_to_show(Workspace&) { return {}; }
  // Whether the panel handles the window's scroll bars itself.
  virtual bool scrolls_itself() const { return false; }
};

struct PanelRow {
  const char* id;     // for --panel and commands: "timeline"
  const char* title;  // of its tab
  const char* about;  // one line, for the View menu
  std::unique_ptr<Panel> (*make)();
};

std::span<const PanelRow> panel_rows();
// Null if no panel has that id.
const PanelRow* find_panel(const std::string& id);

}  // namespace ranklab::viz
