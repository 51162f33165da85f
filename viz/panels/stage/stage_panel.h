// The stage: the ranks as rooms on their links at the cursor's time, what travels between them, what they hold, the
// narrator's lines, and the step below as a scrubber. It draws the script of viz/model/stage/script.h. A click on a
// room shows that rank alone; a click on something that travels selects its event. Thread rule: the window's thread.
#pragma once
#include <imgui.h>

#include "viz/panels/panel.h"
#include "viz/panels/parts/workspace.h"
#include "viz/panels/stage/stage_view.h"
#include "viz/panels/timeline/gantt_strip.h"

namespace ranklab::viz {

class StagePanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;
  bool scrolls_itself() const override { return true; }

  // The position of a room on the screen in the last frame; for a flow, the middle of its first curve.
  ImVec2 middle_of_room(const StageScript& script, size_t room) const;
  ImVec2 middle_of_flow(const StageScript& script, uint32_t flow) const;
  const std::vector<uint32_t>& flows() const { return flows_.flows(); }

 private:
  enum class By : uint8_t { kEvent, kMicrobatch, kLayer };
  void controls(Workspace& workspace, const StageScript& script);
  void go(Workspace& workspace, bool forward);
  void picture(Workspace& workspace, const StageScript& script, ImVec2 size);
  void narrator(Workspace& workspace, const StageScript& script, int lines);
  void scrubber(Workspace& workspace, const StageScript& script, bool rows, float height);

  FlowPainter flows_;
  GanttStrip strip_;
  Cached<ContentKey, BubbleReport> bubbles_;
  By by_ = By::kMicrobatch;
  ImVec2 from_, size_;  // of the picture
  float legend_ = 0;    // height of the legend in the last frame
};

}  // namespace ranklab::viz
