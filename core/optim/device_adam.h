// AdamW's update of a whole group by a device's kernel (core/nn/device_kernels.h): reads gradients, weights and moments
// as they are kept, and writes weights, moments and the parameters' rounded values, in one pass with the gradients'
// factor. The plain version is ParamGroup::update() with at::_fused_adamw_. Internal to core/optim. Thread rule: its
// rank's thread.
#pragma once
#include "core/nn/device_kernels.h"
#include "core/optim/param_groups.h"

namespace ranklab {

// Whether all of the group lies on one device with kernels, in types that they read. The gradients must be there.
bool has_device_adam(const ParamGroup& group, const GroupMoments& moments);
// `rule`: without its types, which are the group's. False: has no kernel, and has done nothing.
bool device_adam(const ParamGroup& group, const GroupMoments& moments, DeviceAdam rule);

}  // namespace ranklab
