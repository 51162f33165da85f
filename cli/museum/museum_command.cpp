// `ranklab museum list | show NAME | run NAME`: historical bugs of distributed training that `train --inject NAME`
// switches on. Only `run` starts ranks.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/style.h"
#include "cli/common/table.h"
#include "cli/training_module.h"
#include "core/base/text.h"
#include "core/config/exhibit_config.h"
#include "core/museum/exhibit.h"

namespace ranklab {
namespace {

struct MuseumOptions {
  std::string name;
  bool json = false;
};

std::string command_of(const std::vector<std::string>& flags) { return "ranklab train " + join(flags, " "); }

std::string injecting_command(const Exhibit& exhibit) {
  return command_of(exhibit_flags(exhibit, "FOLDER")) + " --inject " + exhibit.name;
}

nlohmann::ordered_json json_of(const Exhibit& exhibit) {
  nlohmann::ordered_json out = {{"name", exhibit.name},
                                {"title", exhibit.title},
                                {"kind", name(exhibit.kind)},
                                {"what_happened", exhibit.what_happened},
                                {"citation", exhibit.citation},
                                {"url", exhibit.url},
                                {"command", injecting_command(exhibit)},
                                {"look_for", exhibit.look_for},
                                {"guilty_module", exhibit.guilty_module},
                                {"guilty_axis", exhibit.guilty_axis}};
  if (*exhibit.before != '\0') out["before"] = command_of(flags_before(exhibit, "FOLDER"));
  return out;
}

int list(const MuseumOptions& options) {
  Table table({"`--inject`", "what is wrong", "kind", "axis", "source"});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Exhibit* exhibit : exhibits()) {
    table.add({"`" + std::string(exhibit->name) + "`", exhibit->title, std::string(name(exhibit->kind)),
               exhibit->guilty_axis, exhibit->citation});
    rows.push_back(json_of(*exhibit));
  }
  std::fputs((options.json ? json_result({{"exhibits", rows}}) : table.for_stdout()).c_str(), stdout);
  return 0;
}

void print_paragraph(const std::string& text) {
  for (const std::string& line : wrapped_lines(text, 100)) std::printf("%s\n", line.c_str());
  std::printf("\n");
}

int show(const MuseumOptions& options) {
  const Exhibit& exhibit = exhibit_named(options.name);
  if (options.json) {
    std::fputs(json_result(json_of(exhibit)).c_str(), stdout);
    return 0;
  }
  const Style style = style_for(stdout);
  std::printf("%s: %s\n\n", style.bold(exhibit.name).c_str(), exhibit.title);
  print_paragraph(exhibit.what_happened);
  std::printf("%s %s\n          %s\n", style.dim("source   ").c_str(), exhibit.citation, exhibit.url);
  std::printf("%s %s\n", style.dim("kind     ").c_str(), std::string(name(exhibit.kind)).c_str());
  std::printf("%s %s, axis %s\n", style.dim("first in ").c_str(), exhibit.guilty_module, exhibit.guilty_axis);
  std::printf("%s %s\n\n", style.dim("look for ").c_str(), exhibit.look_for);
  if (*exhibit.before != '\0') std::printf("%s\n", command_of(flags_before(exhibit, "FOLDER")).c_str());
  std::printf("%s\n", injecting_command(exhibit).c_str());
  return 0;
}

int run(const MuseumOptions& options) {
  const bool all = options.name == "all";
  std::vector<const Exhibit*> chosen(exhibits().begin(), exhibits().end());
  if (!all) chosen = {&exhibit_named(options.name)};
  return training_functions().run_exhibits(chosen, {.json = options.json, .table = all});
}

}  // namespace

CommandAction setup_museum(CommandLine& app) {
  auto options = std::make_shared<MuseumOptions>();
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab museum list\n  ranklab museum show norm-unreduced\n  ranklab museum run norm-unreduced\n"
      "  ranklab train --tp 4 --inject norm-unreduced");
  CommandLine* all = app.add_subcommand("list", "list all bugs with their kind and source");
  CommandLine* one = app.add_subcommand("show", "the story of a bug, its source, and a training run that shows it");
  std::vector<std::pair<std::string, std::string>> words;
  for (const Exhibit* exhibit : exhibits()) words.emplace_back(exhibit->name, exhibit->title);
  one->add_option("NAME", options->name, "a name of the list")->required()->words(words);
  CommandLine* held =
      app.add_subcommand("run", "train with and without a bug; compare what the loss shows with what parity finds");
  held->add_option("NAME", options->name, "a name of the list, or all: a table")->required()->words(words);
  for (CommandLine* sub : {all, one, held}) sub->add_flag("--json", options->json, "print one JSON object");
  return [&app, all, one, held, options] {
    if (all->parsed()) return list(*options);
    if (one->parsed()) return show(*options);
    if (held->parsed()) return run(*options);
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
