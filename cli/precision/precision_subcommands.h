// The subcommands of `ranklab precision`, one file each: each declares itself on `app` and runs if the command line
// names it. To add one, add a file and a row in precision_command.cpp.
#pragma once
#include "cli/common/command.h"

namespace ranklab {

struct PrecisionSubcommand {
  CommandLine* app = nullptr;
  CommandAction action = {};
};

PrecisionSubcommand add_precision_quantize(CommandLine& app);
PrecisionSubcommand add_precision_recipes(CommandLine& app);
PrecisionSubcommand add_precision_explain(CommandLine& app);

}  // namespace ranklab
