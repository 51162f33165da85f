// A Gloo transport inside one process: a send and a receive that name the same pair of ranks and the same slot meet in
// a table, and the bytes move with one memcpy by whoever came second. Gloo's algorithms run over it unchanged. Against
// Gloo's TCP it has no sockets, no event loop, and it refuses a size difference with an exception (TCP ends the process
// when the message is too long, and silently leaves the rest when it is too short). Receives may name several sources
// (the first send wins), waits have time limits, and close() wakes everybody. Cost: two mutexes and one memcpy a
// message. Thread rule: any thread; a buffer may be destroyed with operations pending.
#pragma once
#include <chrono>

#include "backends/cpu_sim/group_transport.h"

namespace ranklab::cpu_sim {

// Contexts of all ranks of a group, connected to each other from the start: no rendezvous is needed.
GlooContexts make_inproc_contexts(int size, std::chrono::milliseconds timeout);

}  // namespace ranklab::cpu_sim
