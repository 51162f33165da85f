// What some worlds can do and others cannot. Features declare the capabilities that they need
// (core/config/requirements.h), and backends those that they have (backend.h). Adding one: a row in kCapabilityTexts,
// and a bit in the rows of the backends that have it. Torch-free. Thread rule: immutable values.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>

namespace ranklab {

enum class Capability : uint8_t {
  kVirtualTime,
  kMakesRanks,
  kHostTensors,
  kGpuTensors,
  kHostTransport,
  kPeerMemory,
  kExpertOverlap,
  kSelectiveRecompute,
  kQuantizedDispatch,
  kQuantizedGather,
  kEmulatedSums,
  kHeldRanks,
  kMeasuredRanks,
  kRecordedPasses,
  kCount
};

// Each completes a sentence: "the ranks have ...".
inline constexpr std::array<const char*, static_cast<size_t>(Capability::kCount)> kCapabilityTexts = {
    "a virtual clock beside the real one",
    "as many ranks as are asked for, in one process",
    "tensors in the host's memory",
    "tensors in a GPU's memory",
    "messages through the host's memory",
    "memory that their peers write into",
    "microbatches that take turns inside a layer",
    "recomputation inside a layer",
    "tokens that travel quantized",
    "weights that are gathered quantized",
    "emulated sums of tensor cores",
    "a debugger that holds them",
    "memory that is measured rank by rank",
    "passes that are recorded and launched at once (CUDA graphs)",
};

constexpr const char* text_of(Capability capability) { return kCapabilityTexts[static_cast<size_t>(capability)]; }

class Capabilities {
 public:
  constexpr Capabilities() = default;
  constexpr Capabilities(std::initializer_list<Capability> all) {
    for (const Capability one : all) bits_ |= bit(one);
  }
  static constexpr Capabilities all() {
    Capabilities result;
    result.bits_ = bit(Capability::kCount) - 1;
    return result;
  }
  constexpr bool has(Capability one) const { return (bits_ & bit(one)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr Capabilities with(Capability one) const {
    Capabilities result = *this;
    result.bits_ |= bit(one);
    return result;
  }
  constexpr Capabilities without(Capability one) const {
    Capabilities result = *this;
    result.bits_ &= ~bit(one);
    return result;
  }
  friend constexpr bool operator==(const Capabilities&, const Capabilities&) = default;

 private:
  static constexpr uint32_t bit(Capability one) { return uint32_t{1} << static_cast<uint32_t>(one); }
  uint32_t bits_ = 0;
};

}  // namespace ranklab
