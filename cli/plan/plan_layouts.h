// The search of core/plan/search/layout_search.h, with plans made by the training code, for `plan search` and `train
// --layout auto`. Thread rule: main thread.
#pragma once
#include <string>
#include <vector>

#include "core/plan/search/layout_search.h"
#include "core/plan/step_time.h"

namespace ranklab {

// Where a plan's time goes.
struct LayoutDetails {
  StepTime time;
  double mfu = 0, bytes = 0;
  double pass_s = 0;  // as in PlannedLayout
};

class LayoutPlanner {
 public:
  LayoutPlanner(TrainConfig base, double memory_share);

  TrainConfig with(const LayoutChoice& choice) const;
  // The details of a complete configuration. Throws what resolve() and a rank throw.
  static LayoutDetails details_of(const TrainConfig& config);
  PlannedLayout plan(const LayoutChoice& choice) const;
  struct Wanted {
    int plans = 48;
    int best = 0;  // how many of the fastest must be exact; 0: every layout is planned
    PinnedLayout pinned = {};
    int beside = 1;  // number of searches that run at the same time on this machine
  };
  // Shows its progress on a terminal.
  std::vector<PlannedLayout> search(const Wanted& wanted) const;
  // Throws kInvalidArgument unless the first row fits.
  void require_fit(const std::vector<PlannedLayout>& rows, const std::string& where) const;

  double most_bytes() const { return static_cast<double>(profile_.memory_bytes) * memory_share_; }
  bool fits(const PlannedLayout& row) const { return row.refused.empty() && row.bytes <= most_bytes(); }
  // Tokens per second and rank.
  double rate(double step_s) const;
  const TrainConfig& base() const { return base_; }
  const HardwareProfile& profile() const { return profile_; }

 private:
  TrainConfig base_;
  double memory_share_;
  HardwareProfile profile_;
};

}  // namespace ranklab
