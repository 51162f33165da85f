// Accepts command lines written for nano-train and Tinytron (the programs whose documents ranklab answers to)
// unchanged, and Megatron-LM's options that have a meaning here. They are converted to ranklab's options before the
// line is parsed; an option without a counterpart is rejected with advice what to use instead. Underscores in options
// count as dashes. None of these options is shown by --help or offered by completion. Thread rule: pure functions.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ranklab {

class CommandLine;
using Words = std::vector<std::string>;

// Converts a foreign option to words of ranklab. `values`: the option's own values; `line`: all words of the command
// line. Throws kInvalidArgument if this value has no counterpart.
using Conversion = std::function<Words(const Words& values, const Words& line)>;

struct ForeignFlag {
  std::string_view name;  // with dashes
  size_t values = 1;      // words that belong to it
  Conversion convert;
  bool also_own = false;  // ranklab has this option too, for other values: convert only these; else its own wins
  bool and_more = false;  // `values` or more words, up to the next option
  // If not null, any number of values may follow as long as this function accepts their form.
  bool (*is_listed)(std::string_view value) = nullptr;
};
// Defined in cli/common/foreign_flag_table.cpp.
std::span<const ForeignFlag> foreign_flags();

// The words after the program's name, with every option converted to one that the command on the line has. For commands
// without training settings, only underscores become dashes. Words after "--" stay unchanged.
Words in_own_flags(const CommandLine& program, Words words);

}  // namespace ranklab
