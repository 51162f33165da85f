// One frame of the visualizer, wherever it is shown: in the window, a headless picture, the test, the benchmark. Owns
// the workspace and the panels. Thread rule: the thread of the ImGui context.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "viz/app/insights_bar.h"
#include "viz/app/layouts.h"
#include "viz/app/popups.h"
#include "viz/app/settings.h"
#include "viz/app/transport_bar.h"
#include "viz/app/window.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class Application {
 public:
  Application();
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  Workspace& workspace() { return workspace_; }
  // Opens what is requested. Throws ranklab::Error.
  void start(const VizRequest& request);

  // Call between ImGui::NewFrame() and Render(). `seconds`: since the last frame.
  void frame(double seconds);
  // Draws one panel alone, over the whole display.
  void frame_of_panel(const std::string& panel_id);

  // Whether the next frame is due immediately, although there was no input.
  bool animates() const;
  // Whether a layout was chosen whose panels are not yet all in place.
  bool arranges() const { return layout_wanted_ || bring_to_front_in_ > 0; }
  bool wants_to_quit() const { return workspace_.requests.quit; }
  // The path of the picture requested in this frame; returned only once.
  std::string take_picture_request();
  void use_layout(const std::string& name);
  const std::string& layout() const { return layout_; }

  Panel* panel(const std::string& id);
  bool is_open(const std::string& id) const;
  void open_panel(const std::string& id);

 private:
  struct OpenPanel {
    const PanelRow* row;
    std::unique_ptr<Panel> panel;
    bool open = false;
    bool failed = false;
    std::string error;
  };

  void read_setting(const std::string& key, const std::string& value);
  std::string settings() const;
  void apply_look();  // applies scale and theme if they changed
  void menu_bar();
  void view_menu();
  void ranks_menu();
  void transport();
  void dockspace();
  void draw_panel(OpenPanel& panel);
  void draw_content(OpenPanel& panel);
  void answer_requests();
  void meet_run();
  void open_requested(std::string& path, bool compare);
  void load_parity_beside();
  void status_text();

  Workspace workspace_;
  std::vector<OpenPanel> panels_;
  TransportBar transport_;
  InsightsBar insights_;
  bool theme_wanted_ = false;  // the request names a theme, which overrides a remembered one
  Popups popups_;
  std::string layout_ = "Pipeline";
  ImVec2 work_size_;  // in the previous frame
  bool layout_wanted_ = false;
  int bring_to_front_in_ = 0;  // this many frames from now
  float applied_scale_ = 1;
  bool show_metrics_ = false;
  bool laid_out_ = false;
  bool panels_busy_ = false;
  bool restored_ = false;    // panels were restored from the last run
  bool shown_ = false;       // a frame was shown
  bool awaits_run_ = false;  // a live run has not recorded anything or been paused yet
  SettingsSection settings_;
};

}  // namespace ranklab::viz
