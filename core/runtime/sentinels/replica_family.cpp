// Checks whether replicas have the same weights: hashes of what each rank has are compared between the ranks that
// should have the same. Where parameters are sharded (ZeRO stage 3), the groups of ranks that together hold them are
// compared.
#include <map>
#include <span>
#include <tuple>

#include "core/base/checksum.h"
#include "core/runtime/sentinels/families.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr uint64_t kExactWeights = uint64_t{1} << 52;

class ReplicaFamily final : public SentinelFamily {
 public:
  ReplicaFamily(SentinelContext& context, RankTable& table) : context_(context), slots_(table.reserve(kKinds)) {}

  bool reads_parameters() const override { return true; }
  void fill(const SentinelStep&, RankTable& table) override {
    const NoCostScope free;
    for (uint64_t& hash : hashes_) hash = 0;
    if (shards()) {
      for (const OwnedState& state : context_.optimizer.owned_state()) add(*state.parameter, state.weight);
    } else {
      for (const Parameter* parameter : context_.model.registry().parameters()) add(*parameter, parameter->data);
    }
    for (size_t kind = 0; kind < kKinds; ++kind)
      table.mine(slots_ + kind) = static_cast<double>(hashes_[kind] % kExactWeights);
  }

  void report(const SentinelStep&, const RankTable& table, SentinelReport& out) override {
    std::map<std::tuple<size_t, int, int, int, int, int>, double> first;
    double drifted = 0;
    for (int rank = 0; rank < table.ranks(); ++rank) {
      bool differs = false;
      for (size_t kind = 0; kind < kKinds; ++kind) {
        const double hash = table.of(rank, slots_ + kind);
        differs |= first.try_emplace(group(kind, rank), hash).first->second != hash;
      }
      drifted += differs ? 1 : 0;
    }
    out.add("replica_drift", drifted);
  }

 private:
  // Dense parameters that tp splits, dense parameters that every tp rank has whole, and the same two for experts and
  // etp.
  enum Kind : size_t { kSplit, kWhole, kSplitExpert, kWholeExpert, kKinds };
  bool shards() const { return context_.plan.zero().parameters; }

  void add(const Parameter& parameter, const at::Tensor& weight) {
    if (!weight.defined() || weight.numel() == 0) return;
    const bool whole = parameter.partition.replicated();
    const Kind kind = parameter.is_expert ? (whole ? kWholeExpert : kSplitExpert) : whole ? kWhole : kSplit;
    const at::Tensor host = weight.detach().to(at::kCPU).contiguous();
    const uint64_t hash = xxh3(std::span(static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()));
    hashes_[kind] = (hashes_[kind] ^ hash) * 0x100000001b3;
  }

  // Ranks with equal results hold the same parameters. DiLoCo replicas drift apart on purpose.
  std::tuple<size_t, int, int, int, int, int> group(size_t kind, int rank) const {
    const auto at = [&](Axis axis) { return context_.ctx.mesh().coordinate(axis, rank); };
    const int pp = at(Axis::kPp), apart = context_.plan.gradient_groups() > 1 ? at(Axis::kDpReplica) : 0;
    // Which pieces of whole and split parameters a shard contains depends on the tp (etp) rank.
    const bool by_tp = kind == kSplit || kind == kSplitExpert || shards();
    if (kind == kSplitExpert || kind == kWholeExpert)
      return {kind, apart, pp, at(Axis::kEp), by_tp ? at(Axis::kEtp) : 0, shards() ? at(Axis::kEdpShard) : 0};
    return {kind, apart, pp, by_tp ? at(Axis::kTp) : 0, 0, shards() ? at(Axis::kDpShard) : 0};
  }

  SentinelContext& context_;
  size_t slots_;
  uint64_t hashes_[kKinds] = {};
};

}  // namespace

std::unique_ptr<SentinelFamily> make_replica_family(SentinelContext& context, RankTable& table) {
  return std::make_unique<ReplicaFamily>(context, table);
}

}  // namespace ranklab
