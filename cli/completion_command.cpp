// `ranklab completion bash | zsh | fish`: prints a script that completes every subcommand and option, and the values of
// options that take a name. It is generated from the parsed command tree, so it is always up to date. For other words
// the shell offers files.
#include <cstdio>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/command_tree.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using Names = std::vector<std::string>;
using Tree = std::vector<CommandEntry>;

// Shell code for bash and zsh: maps `node` (the path so far) and a word to the next node, and a node and an option to
// the option's values.
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
  const CommandLine* bash = app.add_subcommand("bash", "print the script for bash");
  const CommandLine* zsh = app.add_subcommand("zsh", "print the script for zsh");
  const CommandLine* fish = app.add_subcommand("fish", "print the script for fish");
  return [&app, bash, zsh, fish] {
    const Tree tree = command_tree(*app.parent());
    std::string text = app.help();
    if (bash->parsed()) text = bash_script(tree);
    if (zsh->parsed()) text = zsh_script(tree);
    if (fish->parsed()) text = fish_script(tree);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  };
}

}  // namespace ranklab
