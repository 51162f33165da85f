#include "cli/common/foreign_flags.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "cli/common/command_line.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/data_choice.h"

namespace ranklab {
namespace {

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// The command that the line names; `begin` becomes the index of its first argument.
const CommandLine& command_of(const CommandLine& program, const Words& words, size_t& begin) {
  const CommandLine* found = &program;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--color") ++i;  // the only option before a command that takes a value
    if (i >= words.size() || words[i].starts_with('-')) continue;
    const auto& below = found->subcommands();
    const auto next = std::find_if(below.begin(), below.end(), [&](const auto& c) { return c->name() == words[i]; });
    if (next == below.end()) break;
    found = next->get();
    begin = i + 1;
  }
  return *found;
}

// Translates one line option by option.
class Translation {
 public:
  Translation(const CommandLine& command, Words words, size_t begin)
      : command_(command), words_(std::move(words)), at_(begin), out_(words_.begin(), words_.begin() + begin) {
    for (const CommandOption* option : command.options()) {
      has_settings_ |= option->is_setting();
      for (const std::string& name : option->names()) known_.insert(name);
    }
  }

  Words run() {
    while (at_ < words_.size() && words_[at_] != "--") {
      if (words_[at_].starts_with("--"))
        option(words_[at_++]);
      else
        out_.push_back(words_[at_++]);
    }
    out_.insert(out_.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    return std::move(out_);
  }

 private:
  void option(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = with_dashes(word.substr(0, equals));
    const auto foreign = std::ranges::find(foreign_flags(), name, &ForeignFlag::name);
    if (has_settings_ && foreign != foreign_flags().end() && (foreign->also_own || !known_.contains(name)))
      return convert(*foreign, word, equals);
    out_.push_back(known_.contains(name) ? name + (equals == std::string::npos ? "" : word.substr(equals)) : word);
  }

  void convert(const ForeignFlag& foreign, const std::string& word, size_t equals) {
    Words values;
    if (equals != std::string::npos) add_values(foreign, word.substr(equals + 1), values);
    const auto listed = [&] {
      return !values.empty() && foreign.is_listed != nullptr && std::ranges::all_of(values, foreign.is_listed);
    };
    while (values.size() < foreign.values && at_ < words_.size() && !words_[at_].starts_with("--") && !listed())
      add_values(foreign, words_[at_++], values);
    while (listed() && at_ < words_.size() && foreign.is_listed(words_[at_]))
      add_values(foreign, words_[at_++], values);
    while (foreign.and_more && at_ < words_.size() && (!words_[at_].starts_with('-') || weight_in(words_[at_])))
      values.push_back(words_[at_++]);
    const std::string spelt = word.substr(0, equals);
    const bool any_number = listed() || (foreign.and_more && !values.empty());
    RANKLAB_CHECK(any_number || values.size() == foreign.values, ErrorKind::kInvalidArgument,
                  .where = "ranklab " + command_.name(), .what = spelt + " has the wrong number of values",
                  .got = std::to_string(values.size()), .want = std::to_string(foreign.values),
                  .fix = foreign.values > 0 ? "pass the value after it" : "leave the value out");
    const bool blank = foreign.values > 1 && std::ranges::any_of(values, [](const std::string& value) {
                         return value.find_first_not_of(" \t\n") == std::string::npos;
                       });
    RANKLAB_CHECK(!blank, ErrorKind::kInvalidArgument, .where = "ranklab " + command_.name(),
                  .what = spelt + " has an empty value", .got = quote(join(values, " ")),
                  .want = std::to_string(foreign.values) + " values", .fix = "pass the values after it");
    try {
      for (std::string& own : foreign.convert(values, words_)) out_.push_back(std::move(own));
    } catch (const Error& error) {  // thrown by the table, which knows neither the command nor the spelling
      ErrorText text = error.text();
      text.where = "ranklab " + command_.name();
      text.got = quote(join(values, " ").insert(0, values.empty() ? spelt : spelt + " "));
      throw Error(error.kind(), text);
    }
  }

  // Several values may come in one word, separated by blanks: settings are written so, and `launch` passes them on so.
  static void add_values(const ForeignFlag& foreign, const std::string& word, Words& values) {
    if (foreign.values < 2) return values.push_back(word);
    if (word.find_first_not_of(" \t\n") == std::string::npos) return values.push_back(word);  // empty; checked later
    std::istringstream in(word);
    for (std::string value; in >> value;) values.push_back(value);
  }

  const CommandLine& command_;
  Words words_;
  size_t at_;
  Words out_;
  std::set<std::string> known_;
  bool has_settings_ = false;
};

}  // namespace

Words in_own_flags(const CommandLine& program, Words words) {
  size_t begin = 0;
  const CommandLine& command = command_of(program, words, begin);
  return Translation(command, std::move(words), begin).run();
}

}  // namespace ranklab
