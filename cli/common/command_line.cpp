#include "cli/common/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr const char* kHelpAll = "--help-all";

std::string shown(int64_t number) { return std::to_string(number); }
std::string shown(double number) { return strprintf("%g", number); }

// Like CLI::Range, whose messages differ between CLI11's releases.
template <typename T>
CLI::Validator between(T least, T most) {
  const auto refusal = [least, most](const std::string& text) {
    T number{};
    const bool fits = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
    return fits ? std::string() : "got " + text + "; want " + shown(least) + " to " + shown(most);
  };
  return CLI::Validator([refusal](std::string& text) { return refusal(text); },
                        std::string(CLI::detail::type_name<T>()) + " in [" + shown(least) + " - " + shown(most) + "]");
}

// Like CLI::IsMember, likewise.
CLI::Validator among(const std::vector<std::string>& words) {
  const auto refusal = [words](const std::string& text) {
    const bool known = std::ranges::find(words, text) != words.end();
    return known ? std::string()
                 : "got " + quote(text) + "; want " + (words.size() > 1 ? "one of " : "") + join(words, ", ");
  };
  return CLI::Validator([refusal](std::string& text) { return refusal(text); }, "{" + join(words, ",") + "}");
}

class PlainNames : public CLI::Formatter {
 public:
  PlainNames() { column_width(44); }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    static const std::string kMark = "{false}";
    for (size_t at = 0; (at = name.find(kMark)) != std::string::npos;) name.erase(at, kMark.size());
    return name;
  }
};

// Unknown words are rejected after parsing, by name and with the nearest known one.
void let_unknown_words_through(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands({})) let_unknown_words_through(*sub);
}

// Whether CLI11 means this option by the name.
bool is_called(const CommandOption& option, const std::string& name) {
  const std::vector<std::string> names = option.names();
  return option.name() == name || std::ranges::find(names, name) != names.end();
}

// Replaces CLI11's messages "--tp: At Most 1 required but received 2" and "--tp: 1 required TEXT missing". They say
// neither what is wrong nor what to do, and CLI11 reports the cause in no other way.
Error too_many_or_too_few(const CommandLine& command, const std::string& words) {
  const std::string where = command.path();
  std::string flag = words.substr(0, words.find(':'));
  for (const CommandOption* option : command.options())
    if (is_called(*option, flag)) flag = join(option->names(), " / ");
  if (words.find(": At Most 1 ") != std::string::npos)
    return Error(ErrorKind::kInvalidArgument, {.where = where,
                                               .what = flag + " is given more than once",
                                               .got = words.substr(words.rfind(' ') + 1) + " values",
                                               .want = "it once, by one of its names",
                                               .fix = "leave one out"});
  if (words.ends_with(" missing"))
    return Error(ErrorKind::kInvalidArgument, {.where = where,
                                               .what = flag + " has no value",
                                               .got = "nothing after it",
                                               .want = "a value",
                                               .fix = "give it one, or leave it out; see --help"});
  return Error(ErrorKind::kInvalidArgument, {.where = where, .what = words, .fix = "see --help"});
}

// Replaces "file is required", which names neither the command nor what kind of file it needs.
Error missing(const CommandLine& command, const std::string& words) {
  const std::string name = words.substr(0, words.find(" is required"));
  for (const CommandOption* option : command.options()) {
    if (!is_called(*option, name)) continue;
    return Error(
        ErrorKind::kInvalidArgument,
        {.where = command.path(), .what = name + " is missing", .want = option->about(), .fix = "name it; see --help"});
  }
  return Error(ErrorKind::kInvalidArgument, {.where = command.path(), .what = words, .fix = "see --help"});
}

// Replaces "Could not convert: --pp = x". Options with texts need no conversion and are checked elsewhere.
Error not_converted(const std::string& where, const CLI::App& app, std::string words) {
  const size_t name = words.find(": "), value = words.find(" = ");
  if (name == std::string::npos || value == std::string::npos || value < name + 2)
    return Error(ErrorKind::kInvalidArgument, {.where = where, .what = words, .fix = "see --help"});
  const std::string called = words.substr(name + 2, value - name - 2);
  const CLI::Option* option = app.get_option_no_throw(called);
  const bool flag = option != nullptr && option->get_expected_min() == 0;
  const bool whole = option != nullptr && option->get_type_name().find("INT") < 2;  // INT or UINT
  return Error(ErrorKind::kInvalidArgument, {.where = where,
                                             .what = called + (flag ? " takes true or false" : " takes a number"),
                                             .got = quote(words.substr(value + 3)),
                                             .want = flag    ? "true or false"
                                                     : whole ? "a whole number"
                                                             : "a number",
                                             .fix = "see --help"});
}

// A shell makes them of a variable that is not set. They must not stand for the current folder, nor for an option that
// was left out.
void refuse_empty_names(const CommandLine& command) {
  for (const CommandOption* option : command.options()) {
    if (option->count() == 0 || !option->names_something()) continue;
    const std::vector<std::string> given = option->results();
    RANKLAB_CHECK(std::ranges::find(given, "") == given.end(), ErrorKind::kInvalidArgument, .where = command.path(),
                  .what = option->name() + " has an empty value", .got = "''", .want = "a name",
                  .fix = "give it one, or leave it out");
  }
}

}  // namespace

CommandOption* CommandOption::required() {
  option_->required();
  return this;
}
CommandOption* CommandOption::capture_default_str() {
  option_->capture_default_str();
  return this;
}
CommandOption* CommandOption::default_str(const std::string& text) {
  option_->default_str(text);
  return this;
}
CommandOption* CommandOption::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}
CommandOption* CommandOption::group(const std::string& name) {
  option_->group(name);
  return this;
}
CommandOption* CommandOption::delimiter(char between) {
  option_->delimiter(between);
  return this;
}
CommandOption* CommandOption::expected(int count) {
  option_->expected(count);
  return this;
}
CommandOption* CommandOption::expected(int least, int most) {
  option_->expected(least, most);
  return this;
}
CommandOption* CommandOption::takes_rest() {
  takes_rest_ = true;
  return names().empty() ? this : one_value_each();
}
CommandOption* CommandOption::may_be_empty() {
  may_be_empty_ = true;
  return this;
}
CommandOption* CommandOption::one_value_each() {
  option_->allow_extra_args(false);
  return this;
}
CommandOption* CommandOption::one_of(const std::vector<std::string>& words) {
  option_->check(among(words));
  for (const std::string& word : words) words_.emplace_back(word, "");
  return this;
}
CommandOption* CommandOption::bytes() {
  option_->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  return this;
}
CommandOption* CommandOption::within(int64_t least, int64_t most) {
  option_->check(between(least, most));
  return this;
}
CommandOption* CommandOption::within(double least, double most) {
  option_->check(between(least, most));
  return this;
}

CommandOption* CommandOption::in_short_help(const std::string& heading) {
  short_heading_ = heading;
  return this;
}

CommandOption* CommandOption::words(std::vector<std::pair<std::string, std::string>> words) {
  words_ = std::move(words);
  return this;
}

size_t CommandOption::count() const { return option_->count(); }
std::vector<std::string> CommandOption::results() const { return option_->results(); }
std::vector<std::string> CommandOption::names() const {
  std::vector<std::string> names;
  for (const std::string& name : option_->get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option_->get_snames()) names.push_back("-" + name);
  return names;
}
std::string CommandOption::name() const { return option_->get_name(); }
std::string CommandOption::about() const { return option_->get_description(); }
bool CommandOption::names_something() const {
  if (names().empty()) return !takes_rest_ && !may_be_empty_;
  static const std::vector<std::string> kNames = {"FILE", "FOLDER", "PATH", "PREFIX", "NAME"};
  return std::ranges::find(kNames, option_->get_type_name()) != kNames.end();
}
bool CommandOption::takes_value() const { return option_->get_items_expected_max() > 0; }

CommandLine::CommandLine(const std::string& about, const std::string& name)
    : name_(name), about_(about), root_(std::make_unique<CLI::App>(about, name)), app_(root_.get()) {
  keep(app_->get_help_ptr());
}
CommandLine::CommandLine(CommandLine* parent, CLI::App* app, const std::string& about, const std::string& name)
    : name_(name), about_(about), parent_(parent), app_(app) {
  keep(app_->get_help_ptr());
}
CommandLine::~CommandLine() = default;

CommandOption* CommandLine::keep(CLI::Option* option) {
  return options_.emplace_back(std::make_unique<CommandOption>(option)).get();
}

// CLI11's ranges accept NaN, which is neither below nor above them.
template <typename T>
CommandOption* CommandLine::add_option(const std::string& names, T& value, const std::string& about) {
  CLI::Option* option = app_->add_option(names, value, about);
  constexpr bool kMayBeNone = std::is_same_v<T, std::optional<double>>;
  if (std::is_floating_point_v<T> || kMayBeNone) {
    option->check([](const std::string& text) {
      double number = 0;
      const bool read = CLI::detail::lexical_cast(text, number);  // text that is not a number is rejected as such
      return read && !std::isfinite(number) ? "got " + text + "; want a finite number" : std::string();
    });
  }
  return keep(option);
}
template <typename T>
CommandOption* CommandLine::add_flag(const std::string& names, T& value, const std::string& about) {
  return keep(app_->add_flag(names, value, about));
}

#define RANKLAB_OPTION(T) template CommandOption* CommandLine::add_option(const std::string&, T&, const std::string&);
RANKLAB_OPTION(std::string)
RANKLAB_OPTION(bool)
RANKLAB_OPTION(int)
RANKLAB_OPTION(int64_t)
RANKLAB_OPTION(size_t)
RANKLAB_OPTION(float)
RANKLAB_OPTION(double)
RANKLAB_OPTION(std::vector<std::string>)
RANKLAB_OPTION(std::vector<int64_t>)
RANKLAB_OPTION(std::vector<size_t>)
RANKLAB_OPTION(std::optional<std::string>)
RANKLAB_OPTION(std::optional<int>)
RANKLAB_OPTION(std::optional<int64_t>)
RANKLAB_OPTION(std::optional<double>)
#undef RANKLAB_OPTION
template CommandOption* CommandLine::add_flag(const std::string&, bool&, const std::string&);
template CommandOption* CommandLine::add_flag(const std::string&, std::optional<bool>&, const std::string&);

CommandOption* CommandLine::add_option_function(const std::string& names,
                                                const std::function<void(const std::string&)>& take,
                                                const std::string& about) {
  return keep(app_->add_option_function<std::string>(names, take, about));
}

CommandLine* CommandLine::add_subcommand(const std::string& name, const std::string& about) {
  CLI::App* sub = app_->add_subcommand(name, about);
  return subcommands_.emplace_back(new CommandLine(this, sub, about, name)).get();
}

void CommandLine::set_version_flag(const std::string& name, const std::string& text) {
  keep(app_->set_version_flag(name, text));
}
void CommandLine::require_subcommand(int least, int most) {
  app_->require_subcommand(static_cast<size_t>(least), static_cast<size_t>(most));
}
void CommandLine::footer(const std::string& text) { app_->footer(text); }
void CommandLine::add_help_all() {
  keep(app_->add_flag_callback(
      kHelpAll, [] { throw CLI::CallForHelp(); }, "print every option, in groups"));
}
void CommandLine::shorten_help() {
  for (const auto& option : options_)
    if (option->short_heading_) option->group(*option->short_heading_);
  for (const auto& sub : subcommands_) sub->shorten_help();
}
void CommandLine::wide_help() { app_->formatter(std::make_shared<PlainNames>()); }

std::string CommandLine::path() const { return parent_ == nullptr ? name_ : parent_->path() + " " + name_; }
const CommandLine& CommandLine::innermost() const {
  for (const auto& sub : subcommands_)
    if (sub->parsed()) return sub->innermost();
  return *this;
}
bool CommandLine::parsed() const { return app_->parsed(); }
std::string CommandLine::help() const { return app_->help(parent_ == nullptr ? "" : parent_->path()); }

std::vector<CommandOption*> CommandLine::options() const {
  std::vector<CommandOption*> options;
  for (const auto& option : options_) options.push_back(option.get());
  return options;
}

CommandOption* CommandLine::option(const std::string& name) const {
  for (const auto& option : options_)
    for (const std::string& known : option->names())
      if (known == name) return option.get();
  throw Error(ErrorKind::kInternal, {.where = name_, .what = "no such option", .got = name});
}

// CLI11 reads a word that begins with a dash as an option, unless it is the value after "=".
void CommandLine::take_rest(std::vector<std::string>& words) const {
  for (const auto& option : options_) {
    if (option->takes_rest_ && option->names().empty()) mark_rest(words);
    const auto found = option->takes_rest_ ? std::find(words.begin(), words.end(), option->name()) : words.end();
    if (found == words.end()) continue;
    std::string prefix = *found + "=";
    for (auto word = found + 1; word != words.end(); ++word) *word = prefix + *word;
    if (found + 1 != words.end()) words.erase(found);
  }
  for (const auto& sub : subcommands_) sub->take_rest(words);
}

// After "--" every word is a positional.
void CommandLine::mark_rest(std::vector<std::string>& words) const {
  auto word = std::find(words.begin(), words.end(), name_);
  if (word == words.end()) return;
  for (++word; word != words.end(); ++word) {
    const auto own = std::ranges::find_if(options_, [&](const auto& option) {
      const std::vector<std::string> names = option->names();
      return std::find(names.begin(), names.end(), word->substr(0, word->find('='))) != names.end();
    });
    if (own == options_.end()) break;
    const bool value_follows = (*own)->option_->get_expected_max() > 0 && word->find('=') == std::string::npos;
    if (value_follows && word + 1 != words.end()) ++word;
  }
  if (word != words.end() && *word != "--" && *word != "-h" && *word != "--help") words.insert(word, "--");
}

std::optional<int> CommandLine::parse(std::vector<std::string> words) {
  take_rest(words);
  let_unknown_words_through(*app_);
  const auto asked = [&](std::string_view flag) { return std::find(words.begin(), words.end(), flag) != words.end(); };
  // Only for --help: otherwise errors would no longer name an option that help hides.
  if ((asked("--help") || asked("-h")) && !asked(kHelpAll)) shorten_help();
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the end
  try {
    app_->parse(std::move(words));
  } catch (const CLI::Success& help) {
    return app_->exit(help);
  } catch (const CLI::ArgumentMismatch& error) {
    throw too_many_or_too_few(innermost(), error.what());
  } catch (const CLI::RequiredError& error) {
    throw missing(innermost(), error.what());
  } catch (const CLI::ConversionError& error) {
    throw not_converted(innermost().path(), *innermost().app_, error.what());
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::kInvalidArgument, {.where = innermost().path(), .what = error.what(), .fix = "see --help"});
  }
  refuse_empty_names(innermost());
  return std::nullopt;
}

std::vector<std::string> CommandLine::unknown_words() const { return app_->remaining(/*recurse=*/true); }

}  // namespace ranklab
