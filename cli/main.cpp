// The ranklab program: finds the subcommand, and turns errors into one line and an exit code.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string_view>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/command_module.h"
#include "cli/common/error_text.h"
#include "cli/common/foreign_flags.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_output.h"
#include "cli/common/stdout_text.h"
#include "cli/common/style.h"
#include "cli/process_limits.h"
#include "core/base/error.h"
#include "core/base/exhausted.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"

#if defined(__SANITIZE_ADDRESS__)
// The program and its modules link the same static libraries, so each has its own copy of their constants.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_odr_violation=0"; }
#endif

namespace ranklab {
namespace {

const auto kCommands = std::to_array<Command>({
    {"train", "train a model on simulated ranks or GPUs", setup_train},
    {"debug", "train under a debugger prompt: pause, step, set breakpoints, inspect tensors", nullptr, kTrainingModule},
    {"generate", "generate text from a model, with a key/value cache", setup_generate},
    {"eval", "evaluate a model: perplexity of a text, accuracy on multiple-choice tasks", setup_eval},
    {"launch", "start one process per rank, on this host or several", nullptr, kTrainingModule},
    {"bench", "benchmarks: training steps, collectives, kernels, this machine's hardware profile", nullptr, "bench"},
    {"trace", "analyze a trace: what costs most, comparison, validation", nullptr, "viz"},
    {"viz", "view a trace: in a window, as a picture, as text", nullptr, "viz"},
    {"report", "report a run, or compare two, in one HTML file", nullptr, "viz"},
    {"doctor", "check what this machine has and what is missing", nullptr, kTrainingModule},
    {"topo", "ranks, nodes and groups of a mesh, and the traffic between nodes", setup_topo},
    {"parity", "find the first tensor of a parallel layout that differs from one rank, where and why", setup_parity},
    {"plan", "predict step time, memory and traffic; find the best layout for a cluster", setup_plan},
    {"zero", "which rank owns which shard of parameters, gradients and optimizer states", setup_zero},
    {"precision", "8- and 4-bit number formats, recipes, and their rounding errors", setup_precision},
    {"schedule", "pipeline schedules: draw, verify, time, compare", setup_schedule},
    {"list", "list presets, hardware profiles, backends, sentinels, commands and more", setup_list},
    {"lesson", "lessons: a question, an experiment, a checked exercise", nullptr, "lessons"},
    {"museum", "historical bugs of distributed training, to switch on and study", setup_museum},
    {"model", "parameters, FLOPs, memory and weight statistics of a model", setup_model},
    {"config", "settings from every source: show, check, compare", setup_config},
    {"data", "prepare and verify token shards, train tokenizers, show the batch of a step", setup_data},
    {"ckpt", "inspect, verify, compare, convert and reshard checkpoints; Hugging Face import and export", setup_ckpt},
    {"completion", "print a completion script for the shell", setup_completion},
});

// The command's own option that the word ends in, as --max-new-tokens in --tokens. A setting of all commands that is
// only spelled alike would be a worse guess. Short names (--set) end too many words.
std::string own_option_ending(const CommandLine& command, std::string word) {
  constexpr size_t kShort = 5;
  std::ranges::replace(word, '_', '-');
  for (const CommandOption* option : command.options())
    for (const std::string& name : option->names())
      if (!option->is_setting() && name.starts_with("--") && name.size() > kShort && word.ends_with(name.substr(1)))
        return name;
  return "";
}

void refuse_unknown(const CommandLine& app) {
  std::vector<std::string> extras = app.unknown_words();
  std::erase(extras, "--");  // words after it are positional, or rejected by name
  if (extras.empty()) return;
  const CommandLine& sub = app.innermost();
  std::vector<std::string> known, below;
  for (const CommandOption* option : sub.options())
    for (const std::string& name : option->names()) known.push_back(name);
  for (const auto& command : sub.subcommands()) below.push_back(command->name());
  known.insert(known.end(), below.begin(), below.end());
  const std::string word = extras[0].substr(0, extras[0].find('='));
  const std::string own = own_option_ending(sub, word);
  // After --, where no word is an option.
  const bool came_late = word.starts_with("-") && std::ranges::find(known, word) != known.end();
  throw Error(ErrorKind::kInvalidArgument,
              {.where = sub.path(),
               .what = "unknown option or command",
               .got = quote(extras[0]),
               .want = below.empty() || word.starts_with("-") ? "" : "one of " + join(below, ", "),
               .fix = came_late      ? "write options before --"
                      : !own.empty() ? "did you mean " + quote(own) + "?"
                                     : did_you_mean(word, known, "see --help")});
}

// Options that every command takes.
void add_common_options(CommandLine& app) {
  app.add_option_function(
         "--color", [](const std::string& when) { set_color_mode(color_mode(when)); },
         "color: auto (on a terminal that supports it) | always | never")
      ->words({{"auto", ""}, {"always", ""}, {"never", ""}})
      ->type_name("");
  for (const auto& sub : app.subcommands()) add_common_options(*sub);
}

// The first word that is not an option: later words may equal any command's name (`data prepare a.txt --out trace`).
std::string_view command_word(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--color")
      ++i;  // the only option before the command that takes a value
    else if (!word.starts_with('-'))
      return word;
  }
  return {};
}

// Checked before parsing, because parsing itself may fail.
bool has_word(int argc, char** argv, std::string_view word) {
  return std::find(argv + 1, argv + argc, word) != argv + argc;
}
bool asks_for_json(int argc, char** argv) { return has_word(argc, argv, "--json"); }

// Options are declared only for the command on the line, or for all commands if completion or `list commands` lists
// them; modules are built only for the command on the line.
CommandAction set_up(const Command& command, CommandLine& app, bool is_named, bool lists_all) {
  if (!is_named && !lists_all) return {};
  if (command.setup != nullptr) return command.setup(app);
  if (is_named) prepare_module(command.module);
  if (!is_named && !has_module(command.module)) return {};
  return setup_from_module(command.module, command.name, app);
}

int run(int argc, char** argv) {
  CommandLine app("Learn, run and debug distributed training of large language models.", "ranklab");
  app.set_version_flag("--version", "ranklab " RANKLAB_VERSION);
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab train\n  ranklab train --tp 4 --train-iters 50 --log-dir runs/tp4\n\n"
      "Exit codes: 0 done, 1 failure or an unreadable input, 2 usage or configuration, 3 this machine lacks\n"
      "something, 4 a check failed, 5 a rank failed or collectives mismatch, 6 hang or timeout, 7 numbers not finite,\n"
      "8 broken file, 9 done, but a log, trace or output could not be written completely, 10 stopped by a sentinel,\n"
      "130 Ctrl-C, 143 terminated");
  std::vector<std::pair<CommandLine*, CommandAction>> actions;
  const std::string_view named = command_word(argc, argv);
  const bool lists_all = named == "completion" || (named == "list" && has_word(argc, argv, "commands"));
  for (const Command& command : kCommands) {
    CommandLine* sub = app.add_subcommand(command.name, command.about);
    actions.emplace_back(sub, set_up(command, *sub, command.name == named, lists_all));
  }
  add_common_options(app);
  std::vector<std::string> words = in_own_flags(app, {argv + std::min(argc, 1), argv + argc});
  if (const std::optional<int> exit_code = app.parse(std::move(words))) return *exit_code;
  refuse_unknown(app);
  for (const auto& [sub, action] : actions) {
    if (sub->parsed()) return action();
  }
  std::cout << app.help();
  return 0;
}

int run_and_report(int argc, char** argv) {
  try {
    meet_process_limits();
    leave_nothing_unfinished();
    const int code = run(argc, argv);
    const std::string lost = code == 0 ? lost_text(stdout) : "";
    if (lost.empty()) return code;
    print_error(lost);
    return exit_code(ErrorKind::kOutputLost);
  } catch (const std::exception& thrown) {
    const std::optional<Error> exhausted = as_exhausted(thrown);
    const std::exception& error = exhausted ? *exhausted : thrown;
    if (asks_for_json(argc, argv)) std::cout << json_error(error);
    print_error(error.what());
    return exit_code_of(error);
  }
}

}  // namespace
}  // namespace ranklab

int main(int argc, char** argv) {
  const int code = ranklab::run_and_report(argc, argv);
  std::cout.flush();
  std::fflush(nullptr);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers look for leaks at exit
  // Exits without the destructors of static objects: a third of a short command's time was spent in LibTorch's
  // destructors, which remove its operators from their table one by one.
  std::_Exit(code);
#endif
  return code;
}
