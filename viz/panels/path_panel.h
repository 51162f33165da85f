// The critical path: its composition, its segments, and the gain if a kind of work took no time. Thread rule: the
// window's thread.
#pragma once
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "viz/model/critical_path.h"
#include "viz/model/what_if.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class PathPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

  size_t rows() const { return rows_.size(); }  // number of rows of the list in the last frame

 private:
  void what_if(Workspace& workspace);
  void segments(Workspace& workspace, const CriticalPath& path);
  void stay_row(Workspace& workspace, const CriticalPath& path, const PathStay& stay, size_t number);
  void segment_row(Workspace& workspace, const PathSegment& segment);

  static constexpr size_t kStay = SIZE_MAX;

  Cached<ContentKey, std::vector<WhatIf>> what_if_;
  Cached<ContentKey, std::vector<PathStay>> stays_;
  std::set<size_t> open_;                        // stays whose segments are shown
  std::vector<std::pair<size_t, size_t>> rows_;  // stay, and segment or kStay
  bool what_if_wanted_ = false;
};

}  // namespace ranklab::viz
