// Context-parallel attention of the layer at the cursor: blocks of queries and keys, coloured by the rank that computes
// them, and whether each is done, running or to come; each rank's share of the work, and what the rank with the most
// work costs. The numbers come from viz/model/tables/attention_table.h. Thread rule: the window's thread.
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
  // The group that is drawn. REQUIRES: the table is not empty.
  const AttentionGroup& group(Workspace& workspace);
  const AttentionUse& use(Workspace& workspace);

  // The places of the blocks, and of the ranks' shares, which are beside or below them, whichever leaves the blocks
  // larger.
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
  std::optional<size_t> followed_;  // the rank index chosen in another panel when the group was last set
};

}  // namespace ranklab::viz
