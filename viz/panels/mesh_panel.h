// The mesh: ranks at their coordinates, coloured by a metric, and the groups of every axis; a click shows only those
// ranks. Thread rule: the window's thread.
#pragma once
#include <utility>
#include <vector>

#include "viz/model/mesh_table.h"
#include "viz/panels/cached.h"
#include "viz/panels/panel.h"
#include "viz/panels/workspace.h"

namespace ranklab::viz {

class MeshPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

 private:
  void grid(Workspace& workspace, const MeshTable& mesh);
  void groups(Workspace& workspace, const MeshTable& mesh);

  RankMetric metric_ = RankMetric::kBusy;
  Cached<std::pair<ContentKey, RankMetric>, std::vector<RankValue>> values_;
};

}  // namespace ranklab::viz
