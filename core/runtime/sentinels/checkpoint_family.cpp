// Measurements of checkpoints that have become complete on disk.
#include <limits>

#include "core/runtime/sentinels/families.h"

namespace ranklab {
namespace {

class CheckpointFamily final : public SentinelFamily {
 public:
  explicit CheckpointFamily(RankTable& table) : slots_(table.reserve(2)) {}

  void checkpointed(const CheckpointNote& note) override {
    seconds_ = note.written_ms * 1e-3;
    mebibytes_ = static_cast<double>(note.bytes) / (1024.0 * 1024.0);
  }
  void fill(const SentinelStep&, RankTable& table) override {
    table.mine(slots_) = seconds_;
    table.mine(slots_ + 1) = mebibytes_;
    seconds_ = mebibytes_ = kNone;
  }
  void report(const SentinelStep&, const RankTable& table, SentinelReport& out) override {
    out.add("checkpoint_seconds", table.most(slots_));
    out.add("checkpoint_mb", table.most(slots_ + 1));
  }

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  size_t slots_;
  double seconds_ = kNone, mebibytes_ = kNone;
};

}  // namespace

std::unique_ptr<SentinelFamily> make_checkpoint_family(SentinelContext&, RankTable& table) {
  return std::make_unique<CheckpointFamily>(table);
}

}  // namespace ranklab
