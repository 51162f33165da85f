// The subcommands of `ranklab precision`, a file each: they are declared on `app`, and what they do is run when they
// were named. A new one is a file and a row in precision_command.cpp.
#pragma once
#include "cli/command.h"

namespace ranklab {

struct PrecisionSubcommand {
  CLI::App* app = nullptr;
  CommandAction action = {};
};

PrecisionSubcommand add_precision_quantize(CLI::App& app);
PrecisionSubcommand add_precision_recipes(CLI::App& app);
PrecisionSubcommand add_precision_explain(CLI::App& app);

}  // namespace ranklab
