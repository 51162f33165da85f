// A Gloo transport inside one process: a send and a receive that name the same pair of ranks and the same slot meet in
// a table, and the bytes move with one memcpy by whoever came second. Gloo's algorithms run over it unchanged. Against
// Gloo's TCP it has no sockets, no event loop, and it refuses a size difference with an exception (TCP ends the process
// when the message is too long, and silently leaves the rest when it is too short). Receives may name several sources
// (the first send wins), waits have time limits, and close() wakes everybody. Cost: two mutexes and one memcpy a
// message. Thread rule: any thread; a buffer may be destroyed with operations pending.
#pragma once
#include <gloo/context.h>
#include <gloo/transport/device.h>

#include <chrono>
#include <memory>
#include <vector>

namespace ranklab::cpu_sim {

// The device of one group: its contexts are connected to each other from the start.
std::shared_ptr<gloo::transport::Device> make_inproc_device();

// Contexts of all ranks of a group over one new in-process device; no rendezvous is needed.
std::vector<std::shared_ptr<gloo::Context>> make_inproc_contexts(int size, std::chrono::milliseconds timeout);

}  // namespace ranklab::cpu_sim
