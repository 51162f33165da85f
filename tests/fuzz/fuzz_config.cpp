// Any text as a TOML configuration: it is refused with ranklab's own error, or it resolves to a plan whose written form
// reads back to the same settings.
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/config/settings/sources.h"
#include "core/config/settings/toml.h"
#include "core/config/train_config.h"

using namespace ranklab;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const MergedConfig merged = merge_config({}, parse_config_toml(text, "fuzz.toml"));
    const std::string written = config_toml(merged.config);
    const MergedConfig again = merge_config({}, parse_config_toml(written, "written.toml"));
    if (config_toml(again.config) != written) std::abort();
    resolve(merged.config);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
