// The AdamW update of a whole parameter group by a device kernel (core/nn/kernels/device_kernels.h): one pass reads
// gradients, weights and moments in the types in which they are stored, scales the gradients, and writes the weights,
// the moments and, if there are masters, the rounded parameters. The plain version is ParamGroup::update() with
// at::_fused_adamw_. Internal to core/optim. Thread rule: its rank's thread.
#pragma once
#include "core/nn/kernels/device_kernels.h"
#include "core/optim/param_groups.h"

namespace ranklab {

// Whether the whole group is on one device that has such kernels, in types that they read. REQUIRES: gradients are
// defined.
bool has_device_adam(const ParamGroup& group, const GroupMoments& moments);
// `rule` need not set the tensor types: they are taken from the group. RETURNS false if there is no kernel; then
// nothing has changed.
bool device_adam(const ParamGroup& group, const GroupMoments& moments, DeviceAdam rule);

}  // namespace ranklab
