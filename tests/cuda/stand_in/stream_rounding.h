// The steps by which a GPU quantizes operands, on the stand-in's streams: the loops of HostRounding (host_rounding.h),
// which find a GPU's addresses where the host has them. Thread rule: as DeviceRounding.
#pragma once
#include "core/precision/device_rounding.h"

namespace ranklab::stand_in {

// Of a GPU of compute capability 9.0.
const DeviceRounding& stream_rounding();

}  // namespace ranklab::stand_in
