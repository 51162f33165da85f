// A group's verbs on meta tensors: the output tensor is returned unchanged, no byte moves, and times are determined by
// the running members. A represented member does everything at the same time as its representative. Tensors in host
// memory (the few values that the engine computes with: loss, tokens, times) have values, and these are exchanged.
// Thread rule: one rank's thread.
#pragma once
#include <memory>
#include <vector>

#include "backends/meta/meeting.h"
#include "core/comm/communicator.h"

namespace ranklab::meta {

// stand_in[rank]: the rank that runs in its place; for a running rank, the rank itself.
CommunicatorPtr make_meta_communicator(Group group, const std::string& label, std::shared_ptr<Meetings> meetings,
                                       std::shared_ptr<const std::vector<int>> stand_in);

}  // namespace ranklab::meta
