// A group's verbs on meta tensors: the output tensor is returned unchanged, no byte moves, and the times are those of
// the running members. Represented members do at the same time what their representative does. Tensors in host memory
// (the few values that the engine computes with: loss, tokens, times) have values, and are exchanged. Thread rule: one
// rank's thread.
#pragma once
#include <memory>
#include <vector>

#include "backends/meta/meeting.h"
#include "core/comm/communicator.h"

namespace ranklab::meta {

// stand_in[rank]: the rank that runs in its place; itself, for running ranks.
CommunicatorPtr make_meta_communicator(Group group, const std::string& label, std::shared_ptr<Meetings> meetings,
                                       std::shared_ptr<const std::vector<int>> stand_in);

}  // namespace ranklab::meta
