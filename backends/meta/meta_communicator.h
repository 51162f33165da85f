// A group's verbs on shapes: the output that the verb made is the answer, no byte moves, and the times are those of the
// members that run. Members that are stood in for do at the same time what this rank does. Tensors in the host's memory
// (the few numbers that the engine computes with: loss, tokens, times) have values, and are exchanged. Thread rule: one
// rank's thread.
#pragma once
#include <memory>
#include <vector>

#include "backends/meta/meeting.h"
#include "core/comm/communicator.h"

namespace ranklab::meta {

// stand_in[rank]: the rank that runs in its place; itself, for those that run.
CommunicatorPtr make_meta_communicator(Group group, const std::string& label, std::shared_ptr<Meetings> meetings,
                                       std::shared_ptr<const std::vector<int>> stand_in);

}  // namespace ranklab::meta
