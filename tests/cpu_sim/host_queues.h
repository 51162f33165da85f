// A device that is the host: a rank's kernels run on its own thread, and each rank's transfers on a thread of their
// own, in order and a little late. So what happens on a GPU only now and then (a rank that continues before a transfer
// is done, a tensor freed under it) happens here all the time, where sanitizers see it. Thread rule: as
// device_queues.h.
#pragma once
#include <memory>

#include "core/comm/device_queues.h"

namespace ranklab {

std::shared_ptr<DeviceQueues> make_host_queues();

}  // namespace ranklab
