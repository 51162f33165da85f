// ranklab completion bash | zsh | fish: a script that knows every subcommand and option, and the values of options that
// take a name. It is generated from the parsed command tree, so it is always up to date. Other words are left to the
// shell, which offers files.
#include <algorithm>
#include <cstdio>
#include <set>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "core/base/text.h"
#include "core/config/config_fields.h"
#include "core/pipeline/schedules.h"
#include "core/precision/recipe.h"
#include "core/sim/hardware_profile.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

using Names = std::vector<std::string>;

struct OptionEntry {
  Names names = {};  // with dashes
  std::string help = {};
  bool takes_value = false;
  Names values = {};  // empty: any value, files are offered
};

struct CommandEntry {
  std::string path;                                                   // "ranklab trace info"
  std::vector<std::pair<std::string, std::string>> subcommands = {};  // name, help
  std::vector<std::pair<std::string, std::string>> words = {};        // possible values of its argument: name, help
  std::vector<OptionEntry> options = {};
  bool takes_files = false;

  // Subcommands and arguments.
  Names word_names() const {
    Names names;
    for (const auto* list : {&subcommands, &words})
      for (const auto& [name, help] : *list) names.push_back(name);
    return names;
  }
  Names option_names() const {
    Names names;
    for (const OptionEntry& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
    return names;
  }
};

Names preset_names() {
  Names presets;
  for (const ModelPreset& preset : model_presets()) presets.push_back(preset.name);
  return presets;
}
Names schedule_names() {
  Names names;
  for (const ScheduleKind& kind : schedule_kinds()) names.emplace_back(kind.name);
  return names;
}
Names recipe_names() {
  Names names;
  for (const PrecisionRecipe& recipe : precision_recipes()) names.push_back(recipe.name);
  return names;
}

// The values that an option takes by name: its own words, or those of the setting with its name.
Names values_of(const OptionEntry& option, const CommandOption& given) {
  if (!given.words().empty()) {
    Names names;
    for (const auto& [name, help] : given.words()) names.push_back(name);
    return names;
  }
  const auto called = [&](const char* name) {
    return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
  };
  if (called("--hardware")) return hardware_profile_names();
  for (const ConfigField& field : config_fields()) {
    const std::set<std::string> flags(field.flags.begin(), field.flags.end());
    if (!flags.contains(option.names[0])) continue;
    if (!field.choices.empty()) return field.choices;
    if (field.key == "model.preset") return preset_names();
    if (field.key == "parallel.pipeline_schedule") return schedule_names();
    if (field.key == "precision.recipe") return recipe_names();
    return {};
  }
  return {};
}

void walk(const CommandLine& app, const std::string& path, std::vector<CommandEntry>& out) {
  CommandEntry entry{.path = path};
  for (const CommandOption* option : app.options()) {
    OptionEntry row{.names = option->names(), .help = option->about(), .takes_value = option->takes_value()};
    if (row.names.empty()) {
      const auto& words = option->words();
      entry.words.insert(entry.words.end(), words.begin(), words.end());
      entry.takes_files = entry.takes_files || words.empty();
      continue;
    }
    if (row.takes_value) row.values = values_of(row, *option);
    entry.options.push_back(std::move(row));
  }
  for (const auto& sub : app.subcommands()) entry.subcommands.emplace_back(sub->name(), sub->about());
  out.push_back(std::move(entry));
  for (const auto& sub : app.subcommands()) walk(*sub, path + " " + sub->name(), out);
}

using Tree = std::vector<CommandEntry>;

// The shell code shared by bash and zsh: maps `node` (the path so far) and a word to the next node, and node and option
// to the values it takes.
std::string next_node_cases(const Tree& tree) {
  std::string text;
  for (const CommandEntry& entry : tree) {
    for (const auto& [name, help] : entry.subcommands)
      text += "      '" + entry.path + " " + name + "') node='" + entry.path + " " + name + "' ;;\n";
  }
  return text;
}

std::string value_cases(const Tree& tree) {
  std::string text;
  for (const CommandEntry& entry : tree) {
    for (const OptionEntry& option : entry.options) {
      if (!option.takes_value) continue;
      Names patterns;
      for (const std::string& name : option.names) patterns.push_back("'" + entry.path + " " + name + "'");
      text += "    " + join(patterns, "|") + ") takes_value=1; list='" + join(option.values, " ") + "' ;;\n";
    }
  }
  return text;
}

std::string word_cases(const Tree& tree) {
  std::string text;
  for (const CommandEntry& entry : tree) {
    const std::string flags = join(entry.option_names(), " ");
    const bool only_options = entry.word_names().empty() && !entry.takes_files;
    text += "    '" + entry.path + "') flags='" + flags + "'; list='" +
            (only_options ? flags : join(entry.word_names(), " ")) + "' ;;\n";
  }
  return text;
}

std::string bash_script(const Tree& tree) {
  return "# bash completion of ranklab: source <(ranklab completion bash)\n"
         "_ranklab() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local node=ranklab list='' flags='' takes_value='' i\n"
         "  # bash cuts --flag=value into three words\n"
         "  if [[ $cur == = ]]; then cur=''\n"
         "  elif [[ $prev == = ]] && ((COMP_CWORD >= 2)); then prev=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  fi\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case \"$node ${COMP_WORDS[i]}\" in\n" +
         next_node_cases(tree) + "    esac\n  done\n  COMPREPLY=()\n  case \"$node $prev\" in\n" + value_cases(tree) +
         "  esac\n"
         "  if [[ -z $takes_value ]]; then\n    case \"$node\" in\n" +
         word_cases(tree) +
         "    esac\n    [[ $cur == -* ]] && list=$flags\n  fi\n"
         "  [[ -n $list ]] && COMPREPLY=($(compgen -W \"$list\" -- \"$cur\"))\n"
         "  return 0\n}\n"
         "complete -o bashdefault -o default -F _ranklab ranklab\n";
}

std::string zsh_script(const Tree& tree) {
  return "#compdef ranklab\n"
         "# zsh completion of ranklab: source <(ranklab completion zsh), or keep it as _ranklab in a folder of $fpath\n"
         "_ranklab() {\n"
         "  local cur=${words[CURRENT]} prev=${words[CURRENT-1]} node=ranklab list='' flags='' takes_value='' i\n"
         "  if [[ $cur == --*=* ]]; then prev=${cur%%=*}; compset -P '*='; fi\n"
         "  for ((i = 2; i < CURRENT; i++)); do\n"
         "    case \"$node ${words[i]}\" in\n" +
         next_node_cases(tree) + "    esac\n  done\n  case \"$node $prev\" in\n" + value_cases(tree) +
         "  esac\n"
         "  if [[ -z $takes_value ]]; then\n    case \"$node\" in\n" +
         word_cases(tree) +
         "    esac\n    [[ $cur == -* ]] && list=$flags\n  fi\n"
         "  if [[ -n $list ]]; then compadd -- ${=list}; else _files; fi\n}\n"
         "if [[ ${funcstack[1]} == _ranklab ]]; then _ranklab \"$@\"; else compdef _ranklab ranklab; fi\n";
}

std::string fish_quote(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_option(const CommandEntry& entry, const OptionEntry& option) {
  std::string line = "complete -c ranklab -n " + fish_quote("__ranklab_at " + fish_quote(entry.path));
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  line += " -d " + fish_quote(option.help);
  if (option.takes_value && option.values.empty()) line += " -r";
  if (!option.values.empty()) line += " -x -a " + fish_quote(join(option.values, " "));
  return line + "\n";
}

std::string fish_script(const Tree& tree) {
  std::string text =
      "# fish completion of ranklab: ranklab completion fish | source\n"
      "function __ranklab_at\n"
      "  set -l node ranklab\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    switch \"$node $word\"\n";
  for (const CommandEntry& entry : tree) {
    for (const auto& [name, help] : entry.subcommands)
      text += "      case " + fish_quote(entry.path + " " + name) + "\n        set node \"$node $word\"\n";
  }
  text += "    end\n  end\n  test \"$node\" = \"$argv[1]\"\nend\n";
  for (const CommandEntry& entry : tree) {
    const std::string at = "complete -c ranklab -n " + fish_quote("__ranklab_at " + fish_quote(entry.path));
    if (!entry.takes_files) text += at + " -f\n";
    for (const auto* list : {&entry.subcommands, &entry.words})
      for (const auto& [name, help] : *list) text += at + " -a " + fish_quote(name) + " -d " + fish_quote(help) + "\n";
    for (const OptionEntry& option : entry.options) text += fish_option(entry, option);
  }
  return text;
}

}  // namespace

CommandAction setup_completion(CommandLine& app) {
  app.require_subcommand(0, 1);
  app.footer("Examples:\n  source <(ranklab completion bash)\n  ranklab completion fish | source");
  const CommandLine* bash = app.add_subcommand("bash", "for bash");
  const CommandLine* zsh = app.add_subcommand("zsh", "for zsh");
  const CommandLine* fish = app.add_subcommand("fish", "for fish");
  return [&app, bash, zsh, fish] {
    Tree tree;
    walk(*app.parent(), "ranklab", tree);
    std::string text = app.help();
    if (bash->parsed()) text = bash_script(tree);
    if (zsh->parsed()) text = zsh_script(tree);
    if (fish->parsed()) text = fish_script(tree);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  };
}

}  // namespace ranklab
