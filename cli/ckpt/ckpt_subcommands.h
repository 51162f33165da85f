// The subcommands of `ranklab ckpt` that write something, one file each: each declares itself on `app` and runs if the
// command line names it. To add one, add a file and a row in ckpt_command.cpp.
#pragma once
#include "cli/common/command.h"

namespace ranklab {

struct CkptSubcommand {
  CommandLine* app = nullptr;
  CommandAction action = {};
};

CkptSubcommand add_ckpt_export(CommandLine& app);
CkptSubcommand add_ckpt_import(CommandLine& app);
CkptSubcommand add_ckpt_convert(CommandLine& app);
CkptSubcommand add_ckpt_reshard(CommandLine& app);

}  // namespace ranklab
