#include "viz/app/window.h"

#include "viz/app/gl_window.h"
#include "viz/app/layouts.h"
#include "viz/model/parity/parity_file.h"
#include "viz/model/store/load_trace.h"
#include "viz/panels/panel.h"

namespace ranklab::viz {

std::vector<std::pair<std::string, std::string>> panel_names() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const PanelRow& row : panel_rows()) names.emplace_back(row.id, row.about);
  return names;
}

std::vector<std::pair<std::string, std::string>> layout_names() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const LayoutPreset& preset : layout_presets()) names.emplace_back(preset.name, preset.about);
  return names;
}

int run_window(const VizRequest& request) {
  // Checked before the window opens, because a missing file is not a problem of the display.
  for (const std::string& path : request.traces) require_trace_file(path);
  if (!request.compare.empty()) require_trace_file(request.compare);
  if (!request.parity.empty()) read_parity_file(request.parity);
  GlWindow window(request);
  if (request.opened) request.opened();
  while (!window.closed() && !(request.closes && request.closes())) window.turn();
  return 0;
}

}  // namespace ranklab::viz
