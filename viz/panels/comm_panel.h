// The communication inspector: every call as its members saw it, sortable, with the times of each rank, and where the
// members of a group diverge. Thread rule: the window's thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "viz/model/tables/comm_table.h"
#include "viz/model/tables/mismatch_view.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class CommPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

 private:
  const std::vector<CommCall>& calls(Workspace& workspace);
  void table(Workspace& workspace, const std::vector<CommCall>& all);
  void copy_rows(const TraceStore& store, const std::vector<CommCall>& all) const;
  void scroll_to_chosen(const Workspace& workspace, const std::vector<CommCall>& all);
  void order_rows(const std::vector<CommCall>& all);
  void sides(Workspace& workspace, const CommCall& call);
  void mismatches(Workspace& workspace);

  Cached<ContentKey, std::vector<CommCall>> calls_;
  Cached<ContentKey, std::vector<MismatchView>> mismatches_;
  ContentKey ordered_for_;
  std::vector<uint32_t> sorted_, shown_;
  std::string filter_, filtered_by_;
  CommColumn column_ = CommColumn::kBegin;
  std::optional<EventRef> scrolled_to_;
  bool ascending_ = true, resort_ = true;
};

}  // namespace ranklab::viz
