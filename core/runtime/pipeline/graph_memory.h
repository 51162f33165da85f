// A replay allocates no memory that the rank's book would see, but a graph owns what its recording took. This keeps the
// peaks of recordings by category, above what is held between replays, and counts them in the steps that replay them.
// Thread rule: the rank's thread.
#pragma once
#include <functional>

#include "core/sim/memory_scope.h"

namespace ranklab {

class GraphMemory {
 public:
  // Runs `record` and adds its peaks to those of earlier recordings, since their memory is held at the same time.
  void measure(const std::function<void()>& record);
  void note_replay() const;

 private:
  MemoryBook::Peaks taken_;
};

}  // namespace ranklab
