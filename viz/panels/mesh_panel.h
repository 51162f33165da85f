// The mesh: ranks at their coordinates in planes, lines between neighbours, coloured by a metric, and the groups of
// every axis; a click on a group shows only its ranks. Thread rule: the window's thread.
#pragma once
#include <imgui.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "viz/model/tables/mesh_layout.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class MeshPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

 private:
  void grid(Workspace& workspace, const MeshTable& mesh);
  void tile(Workspace& workspace, const MeshTable& mesh, size_t index, ImVec2 at, ImVec2 size, float share,
            const std::string& value);
  void groups(Workspace& workspace, const MeshTable& mesh);

  RankMetric metric_ = RankMetric::kBusy;
  Cached<std::pair<ContentKey, RankMetric>, std::vector<RankValue>> values_;
  Cached<std::pair<ContentKey, int>, MeshLayout> layout_;
  std::optional<size_t> hovered_;  // in the previous frame
};

}  // namespace ranklab::viz
