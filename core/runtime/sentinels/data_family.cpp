// Checks whether sequences repeat, and whether model-parallel peers load the same sequences, from a hash of each
// sequence.
#include <cmath>
#include <map>
#include <span>
#include <unordered_map>

#include "core/base/checksum.h"
#include "core/runtime/sentinels/families.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr int64_t kRepeatWindow = 16;               // number of steps within which a sequence should not come back
constexpr uint64_t kExactHash = uint64_t{1} << 52;  // doubles represent integers exactly up to this

class DataFamily final : public SentinelFamily, public BatchWatch {
 public:
  DataFamily(SentinelContext& context, RankTable& table) : mesh_(context.ctx.mesh()), slots_(table.reserve(kSlots)) {}

  BatchWatch* batch_watch() override { return this; }
  void begin(int64_t step) override {
    step_ = step;
    sequences_ = repeated_ = 0;
    hash_ = 0;
    std::erase_if(seen_, [step](const auto& one) { return one.second + kRepeatWindow < step; });
  }

  void loaded(const Batch& batch, int64_t) override {
    const NoCostScope free;
    const at::Tensor tokens = batch.tokens_BS.to(at::kCPU).contiguous();
    const auto* first = static_cast<const std::byte*>(tokens.const_data_ptr());
    const size_t bytes = tokens.size(0) == 0 ? 0 : tokens.nbytes() / static_cast<size_t>(tokens.size(0));
    for (int64_t i = 0; i < tokens.size(0); ++i) {
      const uint64_t hash = xxh3(std::span(first + static_cast<size_t>(i) * bytes, bytes));
      const auto [it, is_new] = seen_.try_emplace(hash, step_);
      it->second = step_;
      ++sequences_;
      repeated_ += is_new ? 0 : 1;
      hash_ = (hash_ ^ hash) * 0x100000001b3;
    }
  }

  void fill(const SentinelStep&, RankTable& table) override {
    if (sequences_ == 0) return;  // a stage that loads nothing
    table.mine(slots_ + kSequences) = static_cast<double>(sequences_);
    table.mine(slots_ + kRepeated) = static_cast<double>(repeated_);
    table.mine(slots_ + kHash) = static_cast<double>(hash_ % kExactHash);
  }

  void report(const SentinelStep&, const RankTable& table, SentinelReport& out) override {
    std::map<int, double> hash_of;  // by dp rank: the hash of the first rank that loads its sequences
    std::map<double, int> dp_of;    // the reverse
    double sequences = 0, repeated = 0, differ = 0;
    for (int rank = 0; rank < table.ranks(); ++rank) {
      const double hash = table.of(rank, slots_ + kHash);
      if (std::isnan(hash)) continue;
      const int dp = mesh_.coordinate(Axis::kDp, rank);
      const auto [known, is_first] = hash_of.try_emplace(dp, hash);
      if (!is_first) {
        differ += known->second == hash ? 0 : 1;
        continue;
      }
      const double count = table.of(rank, slots_ + kSequences);
      sequences += count;
      repeated += dp_of.try_emplace(hash, dp).second ? table.of(rank, slots_ + kRepeated) : count;
    }
    if (sequences == 0) return;
    out.add("data_repeated", repeated / sequences);
    out.add("data_mismatch", differ);
  }

 private:
  enum Slot { kSequences, kRepeated, kHash, kSlots };
  const DeviceMesh& mesh_;
  size_t slots_;
  std::unordered_map<uint64_t, int64_t> seen_;  // the last step in which each was seen
  int64_t step_ = 0, sequences_ = 0, repeated_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace

std::unique_ptr<SentinelFamily> make_data_family(SentinelContext& context, RankTable& table) {
  return std::make_unique<DataFamily>(context, table);
}

}  // namespace ranklab
