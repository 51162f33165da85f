// Descriptions of the token dispatchers (core/parallel/expert) for torch-free code: the command line and the planner. A
// test checks that the names equal those of the linked dispatchers. Torch-free. Thread rule: immutable.
#pragma once
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/named_rows.h"

namespace ranklab {

struct DispatcherText {
  const char* name;
  const char* idea;
  const char* sends;   // what a rank sends, in elements, if it has T tokens of width H, each of which goes to K experts
  const char* source;  // the publication that describes it
  bool writes_to_peers = false;  // writes into the memory of peers: Capability::kPeerMemory
  // a token is sent to each other node at most once, and forwarded inside that node (node_hops.h)
  bool once_a_node = false;
  // can send each expert as many rows as its capacity, whatever the routing (--moe-pad-expert-input-to-capacity)
  bool pads = false;
};

constexpr DispatcherText kDispatcherTexts[] = {
    {"alltoall", "one row per token and expert, in one uneven all-to-all; counts are exchanged once",
     "T K H minus what stays local", "arXiv 2006.16668", false, false, true},
    {"allgather", "every rank gets every token and sums the outputs of its own experts", "T H to each of the others",
     "Megatron-Core"},
    {"dedup", "a token is sent to each node once, forwarded inside it, and its outputs return summed",
     "T H to each other node that has one of its experts", "DeepEP", false, true},
    {"rdep", "each source rank writes into slots of the owner's memory, without a collective (rank threads only)",
     "T (H + 2 K) to each rank that owns one of its experts", "nmoe", true},
};

// Null if there is no dispatcher of this name.
inline const DispatcherText* dispatcher_text(const std::string& name) {
  const auto* const row = std::ranges::find(kDispatcherTexts, name, &DispatcherText::name);
  return row == std::end(kDispatcherTexts) ? nullptr : row;
}

inline std::vector<std::string> moe_dispatcher_names() { return row_names(kDispatcherTexts); }

}  // namespace ranklab
