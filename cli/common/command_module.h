// Commands that are not in the program itself but in a library next to it (libranklab_training.so, _viz.so, _bench.so,
// _lessons.so), opened when one of them is requested: --help does not wait until LibTorch is loaded, and training does
// not wait until the visualizer is compiled. If ./ranklab started the program (RANKLAB_DRIVER), a module that is
// missing or outdated is built first; the training library is built along with the program. Modules use the program's
// own copy of what they need from it. Thread rule: main thread.
#pragma once
#include <string>

#include "cli/common/command.h"

namespace ranklab {

constexpr const char* kTrainingModule = "training";  // the part that needs LibTorch (cli/training_module.h)

using ModuleSetup = void(CommandLine& app, CommandAction& action);

// Builds the module, using RANKLAB_DRIVER if it is set. Throws kEnvironment where that fails.
void prepare_module(const std::string& module);

// Whether it exists and can be opened.
bool has_module(const std::string& module);

// A function of the module by its C name. Throws kEnvironment where the module cannot be opened.
void* module_function(const std::string& module, const std::string& function);

// RETURNS: the result of the module's setup_COMMAND().
CommandAction setup_from_module(const std::string& module, const std::string& command, CommandLine& app);

}  // namespace ranklab

// Used in the source of a module's command: setup_from_module() finds it.
#define RANKLAB_MODULE_COMMAND(NAME)                                                                  \
  extern "C" void ranklab_command_##NAME(ranklab::CommandLine& app, ranklab::CommandAction& action) { \
    action = ranklab::setup_##NAME(app);                                                              \
  }
