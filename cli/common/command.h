// A subcommand is one file and one row in main.cpp: setup() declares its options on `app` and returns the action to run
// after parsing. For commands in modules, the row names the module instead.
#pragma once
#include <functional>
#include <string>

namespace ranklab {

class CommandLine;

using CommandAction = std::function<int()>;  // returns the exit code

struct Command {
  std::string name;
  std::string about;
  CommandAction (*setup)(CommandLine& app) = nullptr;
  std::string module = {};  // if setup is null: the module that contains it (command_module.h)
};

CommandAction setup_train(CommandLine& app);
CommandAction setup_debug(CommandLine& app);
CommandAction setup_eval(CommandLine& app);
CommandAction setup_generate(CommandLine& app);
CommandAction setup_launch(CommandLine& app);
CommandAction setup_bench(CommandLine& app);
CommandAction setup_trace(CommandLine& app);
CommandAction setup_list(CommandLine& app);
CommandAction setup_lesson(CommandLine& app);
CommandAction setup_topo(CommandLine& app);
CommandAction setup_parity(CommandLine& app);
CommandAction setup_plan(CommandLine& app);
CommandAction setup_zero(CommandLine& app);
CommandAction setup_precision(CommandLine& app);
CommandAction setup_doctor(CommandLine& app);
CommandAction setup_config(CommandLine& app);
CommandAction setup_model(CommandLine& app);
CommandAction setup_completion(CommandLine& app);
CommandAction setup_data(CommandLine& app);
CommandAction setup_ckpt(CommandLine& app);
CommandAction setup_schedule(CommandLine& app);
CommandAction setup_report(CommandLine& app);
CommandAction setup_viz(CommandLine& app);
CommandAction setup_museum(CommandLine& app);

}  // namespace ranklab
