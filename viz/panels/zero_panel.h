// What each rank holds of the parameters, gradients and optimizer states that data-parallel ranks shard (ZeRO), at the
// cursor: one cell per bucket and rank with a lane for each of the three; bytes of each rank; the four stages next to
// each other. The numbers come from viz/model/tables/zero_table.h. Thread rule: the window's thread.
#pragma once
#include <imgui.h>

#include <utility>

#include "viz/model/tables/zero_table.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class ZeroPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

  const ZeroTable& table(Workspace& workspace);  // for the cursor's step
  // The ZeRO stage that is drawn: the run's own at the cursor's time, or another one as it would be at the update.
  int drawn_stage(Workspace& workspace);

 private:
  enum class View : uint8_t { kRun, kStage0, kStage1, kStage2, kStage3 };
  struct Look;  // the inputs for drawing a cell

  void controls(Workspace& workspace);
  void grid(Workspace& workspace, const ZeroTable& all, ImVec2 size);
  void header(Workspace& workspace, const ZeroTable& all, ImVec2 at, float label, float cell);
  void cell(const Look& look, ImVec2 at, ImVec2 size) const;
  void cell_tooltip(Workspace& workspace, const ZeroBucketRow& row, size_t rank) const;
  void stages(Workspace& workspace, const ZeroTable& all) const;

  Cached<std::pair<ContentKey, int>, ZeroTable> table_;
  View view_ = View::kRun;
};

}  // namespace ranklab::viz
