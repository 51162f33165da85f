// One suite for every backend: each verb, at every group size and count that could go wrong, checked against plain
// loops over all members' inputs. A backend registers itself with a world factory and says what it can do; its tests
// are then named Conformance_<name>.<case>. Cost: about 6 s for the three paths of the thread world.
#pragma once
#include <c10/core/ScalarType.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/world.h"

namespace ranklab::conformance {

struct Backend {
  std::string name;  // "direct", "gloo_tcp", "nccl"
  std::function<std::unique_ptr<World>(int size)> make_world;
  std::vector<int> sizes = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int64_t> counts = {0, 1, 7, 1000, 4097};
  std::vector<at::ScalarType> dtypes = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong};
  bool canonical_order = true;  // reductions have the bits of tree_reduce; else they are compared with a tolerance
  bool has_tags = true;         // messages of a pair are told apart by tags; else by their order in a lane
  int delay_runs = 100;         // repetitions with random delays that must give the same bits
};

// Registers the whole suite with GoogleTest. Call it before RUN_ALL_TESTS.
void register_suite(const Backend& backend);

}  // namespace ranklab::conformance
