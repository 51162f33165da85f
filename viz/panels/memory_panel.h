// Bytes by category over time, stacked, for one rank or two next to each other on one scale, with a line at the
// device's memory if it is near, and every rank's peak with its composition. Thread rule: the window's thread.
#pragma once
#include <vector>

#include "viz/model/tables/memory_table.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class MemoryPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

 private:
  // Cumulative sums from the bottom category up, for one rank.
  struct Stack {
    std::vector<double> time_ns;
    std::vector<std::vector<double>> upto;  // [category]
  };
  struct PlotSize {
    float width = 0;
    double top_bytes = 0;  // upper limit of the axis
  };
  const std::vector<RankMemory>& table(Workspace& workspace);
  void plot(Workspace& workspace, const std::vector<RankMemory>& all, size_t rank, const PlotSize& size);
  void peaks(Workspace& workspace, const std::vector<RankMemory>& all, float height);

  Cached<ContentKey, std::vector<RankMemory>> table_;
  Cached<ContentKey, std::vector<Stack>> stacks_;
  int rank_ = 0;
  int other_ = -1;  // -1: no second rank
};

}  // namespace ranklab::viz
