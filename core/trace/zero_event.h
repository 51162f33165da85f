// State changes of parameters and gradients that are sharded over data-parallel ranks (ZeRO), as instants. Each is
// named "zero STATE BUCKET", where a bucket is named after the unit to which it belongs (ZeRO stage 3: "layers.3",
// "layers.3 experts") or after the units whose gradients it contains ("layers.0 - layers.1"). Torch-free. Thread rule:
// constants.
#pragma once
#include <array>
#include <string>
#include <string_view>

namespace ranklab {

// Recorded at the beginning of each traced step. Array: elements including padding, padding, number of ranks that shard
// the bucket (or would, at stage 0), size of this rank's shard, bytes per element, ZeRO stage, 1 for experts, bytes per
// element of optimizer states, bytes per element of the gradient.
constexpr std::string_view kZeroBucketEvent = "zero bucket ";

enum class ZeroState { kPartial, kReduced, kUpdated, kGathering, kGathered, kFreed };
// Gradients: summed on this rank over some of its microbatches; summed over the ranks. Parameters: updated by their
// owners; being gathered; completely gathered; full copy freed again.
constexpr std::array<std::string_view, 6> kZeroStateEvents = {"zero partial ",   "zero reduced ",  "zero updated ",
                                                              "zero gathering ", "zero gathered ", "zero freed "};
inline std::string zero_event_name(ZeroState state, std::string_view bucket) {
  return std::string(kZeroStateEvents[static_cast<size_t>(state)]) + std::string(bucket);
}

}  // namespace ranklab
