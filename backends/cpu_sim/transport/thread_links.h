// The data connections of a world whose ranks are threads, when its bytes go over TCP: each rank has its own links, as
// if it were a process, on the loopback interface. Thread rule: belongs to one thread at a time.
#pragma once
#include <memory>
#include <vector>

#include "backends/cpu_sim/transport/peer_links.h"

namespace ranklab::cpu_sim {

// Indexed by rank. Throws kTimeout or kEnvironment if the loopback interface does not work.
std::vector<std::shared_ptr<PeerLinks>> connect_threads(int world_size);

}  // namespace ranklab::cpu_sim
