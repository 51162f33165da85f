// Peer memory of shapes: what this rank puts into each member's buffer, every member has put into its own. Thread rule:
// one rank's thread.
#pragma once
#include "core/comm/peer_memory.h"

namespace ranklab::meta {

PeerMemoryPtr make_meta_peer_memory(const Group& group);

}  // namespace ranklab::meta
