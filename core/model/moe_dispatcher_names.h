// The names of the token dispatchers (core/parallel/expert), for what knows no torch: the command line and the planner.
// A test holds them equal to the dispatchers that are linked. Torch-free. Thread rule: immutable.
#pragma once
#include <string>
#include <vector>

namespace ranklab {

inline std::vector<std::string> moe_dispatcher_names() { return {"alltoall", "allgather", "dedup", "rdep"}; }

}  // namespace ranklab
