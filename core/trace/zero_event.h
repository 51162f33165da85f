// What becomes of parameters and gradients that data-parallel ranks share out (ZeRO), as instants. Each is named
// "zero STATE BUCKET": a bucket is called after the unit it belongs to (ZeRO stage 3: "layers.3", "layers.3 experts")
// or after the units whose gradients lie in it ("layers.0 - layers.1"). Torch-free. Thread rule: constants.
#pragma once
#include <array>
#include <string>
#include <string_view>

namespace ranklab {

// Array: elements with padding, padding, ranks that share it out or would (stage 0), this rank's part, bytes of an
// element, ZeRO stage, 1 for experts, bytes of an element's optimizer states and of its gradient. At the begin of each
// traced step.
constexpr std::string_view kZeroBucketEvent = "zero bucket ";

enum class ZeroState { kPartial, kReduced, kUpdated, kGathering, kGathered, kFreed };
// Of gradients: this rank's sum over some of its microbatches; summed over the ranks. Of parameters: updated by its
// owners; on their way here; here as a whole; the whole freed again.
constexpr std::array<std::string_view, 6> kZeroStateEvents = {"zero partial ",   "zero reduced ",  "zero updated ",
                                                              "zero gathering ", "zero gathered ", "zero freed "};
inline std::string zero_event_name(ZeroState state, std::string_view bucket) {
  return std::string(kZeroStateEvents[static_cast<size_t>(state)]) + std::string(bucket);
}

}  // namespace ranklab
