// The observer around a backend's peer memory: each put is a message event at its sender (a rank's puts leave one after
// another) and, once taken, at its receiver, whose clock moves to the last arrival. Cost: one event per put on each
// side. Thread rule: its rank's thread.
#pragma once

#include "core/comm/peer_memory.h"
#include "core/sim/link_cost.h"
#include "core/sim/virtual_clock.h"
#include "core/trace/tracer.h"

namespace ranklab {

// `clock` and `cost` may be null (no virtual time), `tracer` may be null (no events). All must outlive the result.
PeerMemoryPtr make_traced_peer_memory(PeerMemoryPtr inner, VirtualClock* clock, Tracer* tracer, const LinkCost* cost);

}  // namespace ranklab
