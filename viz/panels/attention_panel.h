// Who attends to what with context parallelism: the blocks of queries and keys by the rank that computes them, those of
// the layer at the cursor, done, running or to come; each rank's share of the work, and what the fullest one costs. The
// numbers come from viz/model/tables/attention_table.h. Thread rule: the window's thread.
#pragma once
#include <imgui.h>

#include <optional>
#include <utility>

#include "viz/model/tables/attention_table.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class AttentionPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

  const AttentionTable& table(Workspace& workspace);  // for the cursor's step
  // What is drawn. REQUIRES: the table is not empty.
  const AttentionGroup& group(Workspace& workspace);
  const AttentionUse& use(Workspace& workspace);

  // The blocks, and beside or below them, wherever the blocks are larger, the ranks' shares.
  struct Places {
    bool beside = false;
    ImVec2 blocks, shares;
  };
  static Places places(const AttentionUse& use, ImVec2 space);

 private:
  void follow_selection(Workspace& workspace);
  void controls(Workspace& workspace);
  void balance(Workspace& workspace);

  Cached<std::pair<ContentKey, int>, AttentionTable> table_;
  size_t group_ = 0;
  std::optional<size_t> followed_;  // the rank index that was chosen elsewhere when the group was last set
};

}  // namespace ranklab::viz
