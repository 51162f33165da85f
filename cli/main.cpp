// The ranklab program: finds the subcommand, turns errors into one line and an exit code.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <string_view>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/style.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

const auto kCommands = std::to_array<Command>({
    {"train", "train a model on simulated ranks or GPUs", setup_train},
    {"debug", "train under a prompt: pause, step, break, look into tensors", setup_debug},
    {"generate", "text from a model, with a key/value cache", setup_generate},
    {"launch", "start one process per rank, on this host or several", setup_launch},
    {"bench", "measure collectives and training steps", setup_bench},
    {"trace", "look into a trace file", setup_trace},
    {"viz", "see a trace: in a window, as a picture, as text", setup_viz},
    {"doctor", "what this machine has, and what it lacks", setup_doctor},
    {"topo", "ranks, nodes and groups of a mesh, and what crosses nodes", setup_topo},
    {"plan", "what a run will hold, from its numbers alone", setup_plan},
    {"zero", "who owns what when data-parallel ranks share it out", setup_zero},
    {"precision", "number formats of 8 and 4 bits, and what rounding to them loses", setup_precision},
    {"schedule", "pipeline schedules: draw, prove, time, compare", setup_schedule},
    {"list", "model presets, hardware profiles, token dispatchers", setup_list},
    {"lesson", "learn: questions, experiments, exercises", setup_lesson},
    {"model", "what a model consists of and what it costs", setup_model},
    {"config", "settings from every source: show, check, compare", setup_config},
    {"data", "write and check token shards", setup_data},
    {"ckpt", "look into safetensors files, prove them, compare them", setup_ckpt},
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
  std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  std::erase(extras, "--");  // what follows it went to a positional, or is refused by name
  if (extras.empty()) return;
  const CLI::App& sub = innermost(app);
  std::vector<std::string> flags;
  collect_flags(sub, flags);
  const std::string word = extras[0].substr(0, extras[0].find('='));
  const std::string nearest = nearest_name(word, flags);
  std::vector<std::string> below;
  for (const CLI::App* command : sub.get_subcommands({})) below.push_back(command->get_name());
  throw Error(ErrorKind::kInvalidArgument,
              {.where = &sub == &app ? "ranklab" : "ranklab " + sub.get_name(),
               .what = "unknown option or command",
               .got = quote(extras[0]),
               .want = below.empty() || word.starts_with("-") ? "" : "one of " + join(below, ", "),
               .fix = nearest.empty() ? "see --help" : "did you mean " + quote(nearest) + "?"});
}

// What every command takes.
void add_common_options(CLI::App& app) {
  app.add_option_function<std::string>(
         "--color", [](const std::string& when) { set_color_mode(color_mode(when)); },
         "colour: auto (a terminal that wants it) | always | never")
      ->type_name("");
  for (CLI::App* sub : app.get_subcommands({})) add_common_options(*sub);
}

// Every sub-subcommand, too, lets unknown words through to refuse_unknown().
void allow_extras(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands({})) allow_extras(*sub);
}

// Asked before parsing, which may be what fails.
bool asks_for_json(int argc, char** argv) {
  return std::find(argv + 1, argv + argc, std::string_view("--json")) != argv + argc;
}

int run(int argc, char** argv) {
  CLI::App app{"Learn, run and debug distributed training of large language models.", "ranklab"};
  app.set_version_flag("--version", "ranklab " RANKLAB_VERSION);
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab train\n  ranklab train --tp 4 --train-iters 50 --log-dir runs/tp4\n\n"
      "Exit codes: 0 done, 1 failure, 2 usage or configuration, 3 this machine lacks something, 4 a check failed,\n"
      "5 a rank failed or collectives mismatch, 6 hang or timeout, 7 numbers not finite, 8 broken file, 130 Ctrl-C,\n"
      "143 terminated");
  std::vector<std::pair<CLI::App*, CommandAction>> actions;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.about);
    actions.emplace_back(sub, command.setup(*sub));
  }
  allow_extras(app);
  add_common_options(app);
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
  } catch (const std::exception& error) {
    if (ranklab::asks_for_json(argc, argv)) std::cout << ranklab::json_error(error);
    std::cerr << ranklab::style_for(stderr).red("ranklab: error:") << " " << error.what() << "\n";
    return ranklab::exit_code_of(error);
  }
}
