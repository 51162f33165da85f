#include "core/config/device_choice.h"

#include "core/config/train_config.h"

namespace ranklab {

bool TrainConfig::on_gpu() const {
  if (device == kUsualDevice) return find_backend(backend).on_host.empty();
  return device != kHostDevice;
}

bool TrainConfig::can(Capability capability) const {
  const Backend& row = find_backend(backend);
  return (on_gpu() ? row.on_gpu : row.on_host).has(capability);
}

}  // namespace ranklab
