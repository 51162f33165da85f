// Which ranks communicate with each other. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "core/base/vocabulary.h"

namespace ranklab {

struct Group {
  Axis axis = Axis::kWorld;
  std::vector<int> global_ranks;  // in group order: reductions follow this order
  int group_rank = 0;             // this rank's index in global_ranks

  int size() const { return static_cast<int>(global_ranks.size()); }
  int global_rank() const { return global_ranks[static_cast<size_t>(group_rank)]; }
  // "tp[0 1]": axis and members, the same text on every member; the identity of the group in a world.
  std::string label() const;
};

}  // namespace ranklab
