// The critical path: its composition, segment by segment, and the gain if a kind of work took no time. Thread rule: the
// window's thread.
#pragma once
#include "viz/model/what_if.h"
#include "viz/panels/cached.h"
#include "viz/panels/panel.h"
#include "viz/panels/workspace.h"

namespace ranklab::viz {

class PathPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

 private:
  void what_if(Workspace& workspace);
  void segments(Workspace& workspace, const CriticalPath& path);

  Cached<ContentKey, std::vector<WhatIf>> what_if_;
  bool what_if_wanted_ = false;
};

}  // namespace ranklab::viz
