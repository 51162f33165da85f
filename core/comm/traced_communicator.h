// The observer around a backend's communicator: records every verb as an event with its four times, and advances
// virtual time. A collective starts at the latest member's posting or the group's previous end, whichever is later, and
// lasts as long as LinkCost estimates; every member computes the same times from the same numbers. wait() moves the
// rank's compute stream to the end and records the event. Where wait() blocks a GPU's stream and not the host, the
// event is recorded once the call has ended. Cost: one event and no extra message per call.
#pragma once
#include <memory>

#include "core/comm/communicator.h"
#include "core/sim/link_cost.h"
#include "core/sim/virtual_clock.h"
#include "core/trace/tracer.h"

namespace ranklab {

// `clock` and `cost` may be null (no virtual time), `tracer` may be null (no events). All must outlive the result.
CommunicatorPtr make_traced_communicator(CommunicatorPtr inner, VirtualClock* clock, Tracer* tracer,
                                         std::unique_ptr<LinkCost> cost);

// The observers of a traced communicator, for code whose own work belongs to its calls; nulls for any other
// communicator.
struct Observers {
  VirtualClock* clock = nullptr;
  Tracer* tracer = nullptr;
};
Observers observers_of(Communicator& comm);

// Waits until every call for which this thread has waited has ended and is recorded. Call it before the thread's trace
// is taken.
void settle_traced_calls();

}  // namespace ranklab
