// The values of --device: PyTorch's device names, and the backend's default. Torch-free. Thread rule: pure.
#pragma once

namespace ranklab {

inline constexpr const char* kUsualDevice = "auto";  // the backend's default
inline constexpr const char* kHostDevice = "cpu";
inline constexpr const char* kGpuDevice = "cuda";

}  // namespace ranklab
