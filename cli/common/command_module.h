// Commands that are not in the program itself but in a library next to it (libranklab_training.so, _viz.so, _bench.so,
// _lessons.so), which is opened when one of them is requested. So --help does not wait until LibTorch is loaded, and
// training does not wait until the visualizer is compiled. If ./ranklab started the program (RANKLAB_DRIVER), a missing
// or outdated module is built first; the training library is built along with the program. Modules use the program's
// own copy of what they need from it. Thread rule: main thread.
#pragma once
#include <string>

#include "cli/common/command.h"

namespace ranklab {

constexpr const char* kTrainingModule = "training";  // the part that needs LibTorch (cli/training_module.h)

using ModuleSetup = void(CommandLine& app, CommandAction& action);

// Builds the module, using RANKLAB_DRIVER if it is set. Throws kEnvironment if the build fails.
void prepare_module(const std::string& module);

// Whether the module exists and can be opened.
bool has_module(const std::string& module);

// A function of the module, looked up by its C name. Throws kEnvironment if the module cannot be opened.
void* module_function(const std::string& module, const std::string& function);

// RETURNS: the result of the setup_COMMAND() function in the module.
CommandAction setup_from_module(const std::string& module, const std::string& command, CommandLine& app);

}  // namespace ranklab

// Exports a command from a module's source, where setup_from_module() finds it.
#define RANKLAB_MODULE_COMMAND(NAME)                                                                  \
  extern "C" void ranklab_command_##NAME(ranklab::CommandLine& app, ranklab::CommandAction& action) { \
    action = ranklab::setup_##NAME(app);                                                              \
  }
