// Command lines written for nano-train and Tinytron (the programs whose documents ranklab answers to) run as they
// stand, as do Megatron-LM's options that mean something here: they become ranklab's before the line is parsed, and
// what has no counterpart is refused by saying what to use. Options with underscores instead of dashes are the same
// options. None of it is shown by --help or completed. Thread rule: pure functions.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ranklab {

class CommandLine;
using Words = std::vector<std::string>;

// What a foreign option becomes. `values` are its own, `line` all words of the command line. Throws kInvalidArgument if
// this value has no counterpart.
using Conversion = std::function<Words(const Words& values, const Words& line)>;

struct ForeignFlag {
  std::string_view name;  // with dashes
  size_t values = 1;      // words that belong to it
  Conversion convert;
  bool also_own = false;  // ranklab has an option of this name, which takes other values; otherwise its own one wins
  bool and_more = false;  // so many values or more, up to the next option
  // Whether a value has the form of which any number may come, or none if `values` is the only number.
  bool (*is_listed)(std::string_view value) = nullptr;
};
// cli/common/foreign_flag_table.cpp
std::span<const ForeignFlag> foreign_flags();

// The words after the program's name with every option as the command on the line knows it. Commands without training
// settings only get their dashes. Words after "--" stay.
Words in_own_flags(const CommandLine& program, Words words);

}  // namespace ranklab
