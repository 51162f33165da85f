// The selected event with every field, or the selected area with totals. Thread rule: the window's thread.
#pragma once
#include <utility>
#include <vector>

#include "viz/model/store/event_details.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/area_totals.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class DetailsPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

 private:
  void event(Workspace& workspace, EventRef ref);
  std::vector<Detail> waits(Workspace& workspace, EventRef ref);
  void area(Workspace& workspace);

  Cached<std::pair<ContentKey, Area>, AreaTotals> totals_;
};

}  // namespace ranklab::viz
