// Peer memory on meta tensors: assumes that every member has put into its own buffer what this rank puts there. Thread
// rule: one rank's thread.
#pragma once
#include "core/comm/peer_memory.h"

namespace ranklab::meta {

PeerMemoryPtr make_meta_peer_memory(const Group& group);

}  // namespace ranklab::meta
