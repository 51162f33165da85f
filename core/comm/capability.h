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
  kEmulatedSums,
  kHeldRanks,
  kMeasuredRanks,
  kRecordedPasses,
  kCount
};

// Each completes a sentence: "the ranks have ...".
inline constexpr std::array<const char*, static_cast<size_t>(Capability::kCount)> kCapabilityTexts = {
    "a virtual clock next to the real one",
    "any number of ranks in one process",
    "tensors in host memory",
    "tensors in GPU memory",
    "messages through host memory",
    "memory that peers can write into",
    "emulated tensor core accumulation",
    "a debugger that can pause them",
    "memory measured per rank",
    "captured and replayed passes (CUDA graphs)",
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
