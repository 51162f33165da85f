// Those of a run who see the tensors of a rank's modules: a program's functions (module_watch.h) and --dump
// (tensor_dump.h). Thread rule: its rank's thread; making it is collective.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/components.h"
#include "core/runtime/observe/module_watch.h"
#include "core/runtime/observe/tensor_dump.h"

namespace ranklab {

class RankTaps {
 public:
  // `folder`: rank 0's, where dumps are written. `world` is untraced.
  RankTaps(StepContext& context, const std::vector<ModuleWatch>& watches, const std::string& folder,
           Communicator& world);
  void begin_step(int64_t step);
  void end_step();
  // Writes what this rank's optimizer owns.
  void dump_state(int64_t step) const;

 private:
  StepContext& context_;
  std::string folder_;  // of dumps, the same on all ranks
  std::unique_ptr<ModuleWatches> watches_;
  std::unique_ptr<TensorDump> dump_;
};

}  // namespace ranklab
