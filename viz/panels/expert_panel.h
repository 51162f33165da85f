// How evenly the experts of MoE layers are used: layer x expert of a step as a heatmap, tokens of each expert of a
// layer compared with the ideal, imbalance and biases over the steps, dead experts by name. The numbers come from
// viz/model/tables/expert_load.h. Thread rule: the window's thread.
#pragma once
#include <imgui.h>

#include <vector>

#include "viz/model/tables/expert_load.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class ExpertPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

  // The load of the layer and step shown in the histogram; null if there is none.
  const LayerLoad* shown(Workspace& workspace);

 private:
  const ExpertTable& table(Workspace& workspace);
  int shown_step(Workspace& workspace);  // -1: all steps together
  void controls(Workspace& workspace, const ExpertTable& all);
  void summary(const ExpertTable& all, const LayerLoad& load);
  void heatmap(Workspace& workspace, const ExpertTable& all, ImVec2 size);
  void heatmap_cell(const LayerLoad& load, size_t expert, ImVec2 at, ImVec2 size);

  Cached<ContentKey, ExpertTable> table_;
  Cached<std::pair<ContentKey, int>, LoadHistory> history_;
  int layer_ = -1;   // shown in the histogram and the curves
  int expert_ = -1;  // selected in the heatmap
  bool all_steps_ = false;
  bool sorted_ = false;
};

}  // namespace ranklab::viz
