// A subcommand is one file and one row in main.cpp: setup() declares its options on `app` and returns what to run once
// they are parsed.
#pragma once
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace ranklab {

using CommandAction = std::function<int()>;  // returns the exit code

struct Command {
  std::string name;
  std::string about;
  CommandAction (*setup)(CLI::App& app);
};

CommandAction setup_train(CLI::App& app);
CommandAction setup_debug(CLI::App& app);
CommandAction setup_generate(CLI::App& app);
CommandAction setup_launch(CLI::App& app);
CommandAction setup_bench(CLI::App& app);
CommandAction setup_trace(CLI::App& app);
CommandAction setup_list(CLI::App& app);
CommandAction setup_lesson(CLI::App& app);
CommandAction setup_topo(CLI::App& app);
CommandAction setup_plan(CLI::App& app);
CommandAction setup_zero(CLI::App& app);
CommandAction setup_precision(CLI::App& app);
CommandAction setup_doctor(CLI::App& app);
CommandAction setup_config(CLI::App& app);
CommandAction setup_model(CLI::App& app);
CommandAction setup_completion(CLI::App& app);
CommandAction setup_data(CLI::App& app);
CommandAction setup_ckpt(CLI::App& app);
CommandAction setup_schedule(CLI::App& app);
CommandAction setup_viz(CLI::App& app);

}  // namespace ranklab
