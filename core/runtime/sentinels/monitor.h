// The sentinels of one rank: families measure, and a judge compares the measurements with the bounds of the run's
// table. Cost: nothing when off; else one exchange per step, and more in the steps that inspect tensors
// (docs/sentinels.md). None of this counts on the timeline or in virtual time. Thread rule: its rank's thread;
// end_step() is collective.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "core/runtime/sentinels/family.h"
#include "core/runtime/sentinels/judge.h"

namespace ranklab {

class SentinelMonitor : public KeepsRunningValues {
 public:
  // REQUIRES: plan.config.sentinels.any(), and tensors have values. Collective.
  explicit SentinelMonitor(SentinelContext context, const MakeOwnFamily& parity_watch = {});

  void begin_step(int64_t step);
  // Whether a family that is due in this step reads whole parameters at its end.
  bool reads_parameters(int64_t step) const;
  std::shared_ptr<const SentinelReport> end_step(const SentinelStep& step);
  void validated(double loss);                    // on all ranks
  void checkpointed(const CheckpointNote& note);  // on rank 0

  RunningValues running_values() const override;
  void go_on_from(const RunningValues& values) override;

 private:
  // Families that measure in the same steps share a table.
  struct Group {
    RankTable table;
    std::vector<std::unique_ptr<SentinelFamily>> families;
  };
  bool due(int64_t interval, int64_t step) const { return interval > 0 && step % interval == 0; }

  SentinelContext context_;
  SentinelJudge judge_;
  std::map<int64_t, Group> groups_;               // by interval
  void show(SentinelFamily& family, bool there);  // adds or removes the observers that the family needs
};

// The first, middle and last of this many layers, or in debug mode all of them.
std::vector<int64_t> sentinel_layers(int64_t layers, SentinelMode mode);

}  // namespace ranklab
