// Everything in a run that observes the tensors of a rank's modules: a program's functions (module_watch.h) and --dump
// (tensor_dump.h). Thread rule: its rank's thread; construction is collective.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/components.h"
#include "core/runtime/observe/lost_outputs.h"
#include "core/runtime/observe/module_watch.h"
#include "core/runtime/observe/tensor_dump.h"

namespace ranklab {

// The folder of rank 0 where dumps are written, and the object that records dumps that cannot be written (null: such a
// dump ends the run).
struct DumpPlace {
  std::string folder;
  std::shared_ptr<LostOutputs> lost;
};

class RankTaps {
 public:
  // `world` must be untraced.
  RankTaps(StepContext& context, const std::vector<ModuleWatch>& watches, DumpPlace place, Communicator& world);
  void begin_step(int64_t step);
  void end_step();
  // Writes the state that this rank's optimizer owns.
  void dump_state(int64_t step) const;

 private:
  StepContext& context_;
  DumpPlace place_;  // the same folder on all ranks
  std::unique_ptr<ModuleWatches> watches_;
  std::unique_ptr<TensorDump> dump_;
};

}  // namespace ranklab
