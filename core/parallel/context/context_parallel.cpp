#include "core/parallel/context/context_parallel.h"

namespace ranklab {

ContextParallel ContextParallel::of_layer(int64_t layer) const {
  ContextParallel one = *this;
  one.split = {split.of_layer(layer), split.balance};
  return one;
}

std::vector<PositionRun> ContextParallel::part(int64_t own, int of_rank) const {
  return joined_part(own * size(), size() * joined, joined, of_rank, split.balance);
}

ContextParallel ContextParallel::head_group() const {
  if (!active() || split.exchange == ContextExchange::kAllToAll) return *this;
  if (split.exchange != ContextExchange::kAllToAllP2p) return {};
  // Stripes are kept one after the other, as in part().
  const bool stripes = split.balance == SequenceBalance::kStripe;
  return {heads, {ContextExchange::kAllToAllP2p, stripes ? SequenceBalance::kContiguous : split.balance}};
}

ContextParallel ContextParallel::key_group() const {
  if (split.exchange == ContextExchange::kAllToAllP2p && active()) return ring_of_neighbours();
  return split.exchange == ContextExchange::kAllToAll ? ContextParallel{} : *this;
}

ContextParallel ContextParallel::ring_of_neighbours() const {
  return {.comm = ring, .split = {ContextExchange::kP2p, split.balance}, .joined = heads->size()};
}

}  // namespace ranklab
