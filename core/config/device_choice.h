// The values of --device, Torch's names of where tensors are, and what a backend makes of them. Torch-free. Thread
// rule: pure.
#pragma once

namespace ranklab {

inline constexpr const char* kUsualDevice = "auto";  // the backend's
inline constexpr const char* kHostDevice = "cpu";
inline constexpr const char* kGpuDevice = "cuda";

}  // namespace ranklab
