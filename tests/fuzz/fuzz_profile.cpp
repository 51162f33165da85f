// Any text as a hardware profile: it is refused with ranklab's own error, or every figure in it is usable.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/sim/hardware_profile.h"
#include "tests/fuzz/scratch_folder.h"

using namespace ranklab;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder kFolder("fuzz_profile");
  const std::string path = kFolder.write("profile.toml", {reinterpret_cast<const char*>(data), size});
  try {
    const HardwareProfile profile = load_hardware_profile(path);
    const bool usable = std::isfinite(profile.memory_bandwidth) && profile.memory_bandwidth > 0 &&
                        profile.memory_bytes > 0 && profile.gpus_per_node > 0 && !profile.sources.empty();
    if (!usable) std::abort();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
