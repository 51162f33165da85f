// Commands that are not in the program itself but in a library beside it (libranklab_training.so, _viz.so, _bench.so,
// _lessons.so), opened when one of them is asked for: who reads --help does not wait until LibTorch is loaded, and who
// trains does not wait until the visualizer is compiled. Where ./ranklab started the program (RANKLAB_DRIVER) a module
// is built first if it is not there or not fresh; the training library is built along with the program. What a module
// needs of the program it takes from it. Thread rule: main thread.
#pragma once
#include <string>

#include "cli/command.h"

namespace ranklab {

constexpr const char* kTrainingModule = "training";  // what needs LibTorch (training_module.h)

using ModuleSetup = void(CommandLine& app, CommandAction& action);

// Has it built, where RANKLAB_DRIVER says by whom. Throws kEnvironment where that fails.
void prepare_module(const std::string& module);

// Whether it is there and can be opened.
bool has_module(const std::string& module);

// A function of the module by its C name. Throws kEnvironment where the module cannot be opened.
void* module_function(const std::string& module, const std::string& function);

// What setup_COMMAND() of the module returns.
CommandAction setup_from_module(const std::string& module, const std::string& command, CommandLine& app);

}  // namespace ranklab

// In the source of a module's command: setup_from_module() finds it.
#define RANKLAB_MODULE_COMMAND(NAME)                                                                  \
  extern "C" void ranklab_command_##NAME(ranklab::CommandLine& app, ranklab::CommandAction& action) { \
    action = ranklab::setup_##NAME(app);                                                              \
  }
