// The ranklab program: finds the subcommand, turns errors into one line and an exit code.

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>

#include "cli/command.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

const auto kCommands = std::to_array<Command>({
    {"train", "train a model on simulated ranks or GPUs", setup_train},
    {"bench", "measure collectives and training steps", setup_bench},
    {"trace", "look into a trace file", setup_trace},
    {"list", "model presets and hardware profiles", setup_list},
    {"config", "settings from every source: show, check, compare", setup_config},
    {"data", "write and check token shards", setup_data},
    {"completion", "print a completion script for the shell", setup_completion},
});

void collect_flags(const CLI::App& app, std::vector<std::string>& flags) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  for (const CLI::App* sub : app.get_subcommands({})) flags.push_back(sub->get_name());
}

// The innermost subcommand that was given, which is where an unknown word belongs.
const CLI::App& innermost(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? app : innermost(*given.front());
}

void refuse_unknown(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  if (extras.empty()) return;
  const CLI::App& sub = innermost(app);
  std::vector<std::string> flags;
  collect_flags(sub, flags);
  const std::string word = extras[0].substr(0, extras[0].find('='));
  const std::string nearest = nearest_name(word, flags);
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "ranklab " + (&sub == &app ? "" : sub.get_name()),
               .what = "unknown option or command",
               .got = quote(extras[0]),
               .fix = nearest.empty() ? "see --help" : "did you mean " + quote(nearest) + "?"});
}

// Every sub-subcommand, too, lets unknown words through to refuse_unknown().
void allow_extras(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands({})) allow_extras(*sub);
}

int run(int argc, char** argv) {
  CLI::App app{"Learn, run and debug distributed training of large language models.", "ranklab"};
  app.set_version_flag("--version", "ranklab " RANKLAB_VERSION);
  app.require_subcommand(0, 1);
  app.footer("Examples:\n  ranklab train\n  ranklab train --tp 4 --train-iters 50 --log-dir runs/tp4");
  std::vector<std::pair<CLI::App*, CommandAction>> actions;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.about);
    actions.emplace_back(sub, command.setup(*sub));
  }
  allow_extras(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::kInvalidArgument, {.where = "ranklab", .what = error.what(), .fix = "see --help"});
  }
  refuse_unknown(app);
  for (const auto& [sub, action] : actions) {
    if (sub->parsed()) return action();
  }
  std::cout << app.help();
  return 0;
}

}  // namespace
}  // namespace ranklab

int main(int argc, char** argv) {
  try {
    return ranklab::run(argc, argv);
  } catch (const ranklab::Error& error) {
    std::cerr << "ranklab: error: " << error.what() << "\n";
    return ranklab::exit_code(error.kind());
  } catch (const std::exception& error) {
    std::cerr << "ranklab: error: " << error.what() << "\n";
    return 1;
  }
}
