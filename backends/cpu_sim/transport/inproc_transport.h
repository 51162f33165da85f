// A Gloo transport inside one process: a send and a receive with the same pair of ranks and the same slot are matched
// in a table, and the second one copies the bytes with one memcpy. Gloo's algorithms run over it unchanged. Unlike
// Gloo's TCP transport it has no sockets and no event loop, and it reports a size mismatch with an exception (TCP ends
// the process if the message is too long, and silently leaves the rest of the buffer unwritten if it is too short).
// Receives may name several sources (the first send wins), waits have time limits, and close() wakes everybody. Cost:
// two mutexes and one memcpy per message. Thread rule: any thread; a buffer may be destroyed with operations pending.
#pragma once
#include <chrono>

#include "backends/cpu_sim/transport/group_transport.h"

namespace ranklab::cpu_sim {

// Contexts of all ranks of a group, already connected to each other: no rendezvous is needed.
GlooContexts make_inproc_contexts(int size, std::chrono::milliseconds timeout);

}  // namespace ranklab::cpu_sim
