// The command-line interface that commands use: a thin wrapper around CLI11, whose header and templates are compiled
// only once, in command_line.cpp, instead of in every command. Names, defaults and help texts are CLI11's. A variable
// bound to an option must live until the line is parsed; values are written then. Thread rule: main thread.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ranklab {

class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}

  CommandOption* required();
  CommandOption* capture_default_str();  // --help shows the current value
  CommandOption* default_str(const std::string& text);
  CommandOption* type_name(const std::string& name);
  CommandOption* group(const std::string& name);  // in --help; "" hides it
  CommandOption* delimiter(char between);
  CommandOption* expected(int count);
  CommandOption* expected(int least, int most);
  CommandOption* one_value_each();  // a list with one value per occurrence, which does not consume the words after it
  // All words after this option belong to it, even those that look like options; its variable is a list of strings.
  // Such an option must be the last on a line. For a positional: starts at the first word that is not an option of the
  // command.
  CommandOption* takes_rest();
  template <typename T>
  CommandOption* range(T least, T most) {
    if constexpr (std::is_floating_point_v<T>)
      return within(double{least}, double{most});
    else
      return within(static_cast<int64_t>(least), static_cast<int64_t>(most));
  }
  CommandOption* may_be_empty();                                 // a positional that is not a name
  CommandOption* one_of(const std::vector<std::string>& words);  // also for completion
  CommandOption* bytes();  // whole numbers that may end in K, M, G ..., powers of 1024

  // Makes --help short. An option with a heading is shown under this heading; one with the heading "" is shown only by
  // --help-all; one without a call of this function is shown by both. --help-all shows each option under its group().
  CommandOption* in_short_help(const std::string& heading);

  // For completion: possible values, each with a description.
  CommandOption* words(std::vector<std::pair<std::string, std::string>> words);
  const std::vector<std::pair<std::string, std::string>>& words() const { return words_; }

  size_t count() const;                      // how often it was given
  std::vector<std::string> results() const;  // as given
  std::vector<std::string> names() const;    // with their dashes, long ones first; none for a positional
  std::string name() const;                  // "lesson", "--load"
  std::string about() const;
  bool takes_value() const;
  bool names_something() const;  // its value is a name, of a file, a folder, a choice, and so not empty
  bool is_setting() const { return short_heading_.has_value(); }  // in_short_help() was called for it

 private:
  CommandOption* within(int64_t least, int64_t most);
  CommandOption* within(double least, double most);
  friend class CommandLine;
  CLI::Option* option_;
  std::vector<std::pair<std::string, std::string>> words_;
  std::optional<std::string> short_heading_;
  bool takes_rest_ = false, may_be_empty_ = false;
};

// A command or subcommand.
class CommandLine {
 public:
  CommandLine(const std::string& about, const std::string& name);  // for the program
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // names: "-o,--out", or "FILE" for a positional. T: std::string, bool, int, int64_t, size_t, float, double, vectors
  // of strings, int64_t and size_t, std::optional of strings, int, int64_t and double.
  template <typename T>
  CommandOption* add_option(const std::string& names, T& value, const std::string& about = "");
  // T: bool, or std::optional<bool>. "--x,!--no-x": the second turns it off.
  template <typename T>
  CommandOption* add_flag(const std::string& names, T& value, const std::string& about = "");
  CommandOption* add_option_function(const std::string& names, const std::function<void(const std::string&)>& take,
                                     const std::string& about = "");
  CommandLine* add_subcommand(const std::string& name, const std::string& about);
  void set_version_flag(const std::string& name, const std::string& text);
  void require_subcommand(int least, int most);
  void footer(const std::string& text);
  void add_help_all();  // declares --help-all, for options that --help leaves out
  void wide_help();     // names in 44 columns, and "--no-x" without CLI11's mark for negated flags

  const std::string& name() const { return name_; }
  const std::string& about() const { return about_; }
  CommandLine* parent() const { return parent_; }
  std::string path() const;  // "ranklab data tokenizer decode"
  // The innermost subcommand that the words named; errors in the words are reported for this one.
  const CommandLine& innermost() const;
  bool parsed() const;
  std::string help() const;
  std::vector<CommandOption*> options() const;
  CommandOption* option(const std::string& name) const;
  const std::vector<std::unique_ptr<CommandLine>>& subcommands() const { return subcommands_; }

  // `words`: without the program's name. RETURNS: the exit code if --help or --version was printed. Words that no
  // command recognizes are left to unknown_words(). Throws kInvalidArgument for invalid arguments.
  std::optional<int> parse(std::vector<std::string> words);
  std::vector<std::string> unknown_words() const;

 private:
  CommandLine(CommandLine* parent, CLI::App* app, const std::string& about, const std::string& name);
  CommandOption* keep(CLI::Option* option);
  void shorten_help();
  void take_rest(std::vector<std::string>& words) const;
  void mark_rest(std::vector<std::string>& words) const;
  std::string name_, about_;
  CommandLine* parent_ = nullptr;
  std::unique_ptr<CLI::App> root_;
  CLI::App* app_;
  std::vector<std::unique_ptr<CommandOption>> options_;
  std::vector<std::unique_ptr<CommandLine>> subcommands_;
};

}  // namespace ranklab
