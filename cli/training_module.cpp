#include "cli/training_module.h"

#include "cli/common/command_module.h"

namespace ranklab {

const TrainingFunctions& training_functions() {
  using Functions = const TrainingFunctions*();
  return *reinterpret_cast<Functions*>(module_function(kTrainingModule, "ranklab_training_functions"))();
}

}  // namespace ranklab
