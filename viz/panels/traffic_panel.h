// The traffic matrix: how much each rank sends to each other rank, with sums, by axis, purpose, nodes and layer, and
// small matrices per step. Thread rule: the window's thread.
#pragma once
#include <imgui.h>

#include <optional>
#include <utility>
#include <vector>

#include "viz/model/tables/traffic_matrix.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

enum class TrafficMode : uint8_t { kBytes, kMessages, kTime, kBandwidth };

class TrafficPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;
  // The matrix that is drawn, for the current window and filter.
  const TrafficMatrix& matrix(Workspace& workspace);
  // Whether the sums cover the step only up to the cursor: while the trace plays, and if the user chose it.
  bool follows_cursor(Workspace& workspace) const;
  // The height of the matrix, with `others` below it; in a low panel the user scrolls to these.
  static float grid_height(float space, float others);

 private:
  using Key = std::pair<ContentKey, TrafficFilter>;
  void begin_with_a_purpose(Workspace& workspace);
  void controls(Workspace& workspace, const TrafficMatrix& matrix);
  void nodes(Workspace& workspace);
  void grid(Workspace& workspace, const TrafficMatrix& matrix, float height);
  void cell(Workspace& workspace, const TrafficMatrix& matrix, size_t from, size_t to, ImVec2 at, ImVec2 size,
            double largest);
  void sums(const TrafficMatrix& matrix, ImVec2 origin, ImVec2 size);
  void steps(Workspace& workspace);
  void chosen_calls(Workspace& workspace);
  double value(const TrafficCell& cell) const;
  std::string words(const TrafficCell& cell) const;
  ImU32 shade(double value, double largest) const;
  Window shown(Workspace& workspace) const;
  Key key(Workspace& workspace) const;
  Key key(Workspace& workspace, const Window& window) const;
  TrafficFilter filter(const Workspace& workspace) const;

  uint64_t opened_ = 0;  // the trace for which a purpose was chosen
  TrafficMode mode_ = TrafficMode::kBytes;
  TrafficLayer layer_ = TrafficLayer::kLogical;
  TrafficFilter filter_;  // except the GPUs per node, which come from the trace
  bool logarithmic_ = false, until_cursor_ = false;
  std::optional<std::pair<int, int>> chosen_;  // global ranks
  // The matrix that is drawn; the matrix of the whole step, which sets the colours while the first one grows; what is
  // sent at the cursor.
  Cached<Key, TrafficMatrix> matrix_, whole_step_, moving_;
  Cached<std::pair<Key, size_t>, std::vector<StepTraffic>> steps_;
  int step_in_view_ = -1;  // the step to which the list of steps was scrolled
  Cached<std::pair<Key, std::pair<int, int>>, std::vector<EventRef>> calls_;
};

}  // namespace ranklab::viz
