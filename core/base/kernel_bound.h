// What dominates a kernel's time: the launch, memory traffic, or arithmetic (the roofline model, Williams et al. 2009).
// Stored in Event::tag of a kernel. Thread rule: constants.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace ranklab {

enum class KernelBound : uint8_t { kLaunch, kMemory, kCompute };
constexpr std::array<std::string_view, 3> kKernelBoundNames = {"launch", "memory", "compute"};

}  // namespace ranklab
