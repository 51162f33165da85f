// All commands with their options and the values that these take, as parsed. Completion and `ranklab list commands` use
// it. Thread rule: main thread.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace ranklab {

class CommandLine;

struct OptionEntry {
  std::vector<std::string> names = {};  // with dashes
  std::string help = {};
  bool takes_value = false;
  std::vector<std::string> values = {};  // empty: any value, and completion offers files
  bool is_setting = false;               // a training setting, which train has too
};

struct CommandEntry {
  std::string path;  // "ranklab trace info"
  std::string about = {};
  std::vector<std::pair<std::string, std::string>> subcommands = {};  // name, help
  std::vector<std::pair<std::string, std::string>> words = {};        // possible values of its argument: name, help
  std::vector<OptionEntry> options = {};
  bool takes_files = false;

  std::vector<std::string> word_names() const;  // subcommands and arguments
  std::vector<std::string> option_names() const;
};

// `program` and every command below it, each after its parent.
std::vector<CommandEntry> command_tree(const CommandLine& program);

}  // namespace ranklab
