// Functions that make the rows of config_fields(): a member of TrainConfig with its key, flags and help. Internal to
// core/config/settings. Thread rule: pure functions.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/config/settings/fields.h"

namespace ranklab::fields {

using Flags = std::vector<std::string>;

// The remedy that an error suggests when a field refuses a value.
inline std::string usual(const ConfigField& field) {
  return "pass such a value, or leave " + field.flags[0] + " out for the default";
}

[[noreturn]] inline void refuse(const ConfigField& field, const std::string& text, const std::string& want) {
  throw Error(ErrorKind::kInvalidArgument, {.where = "config",
                                            .what = join(field.flags, " / ") + " cannot take this value",
                                            .got = quote(text),
                                            .want = want,
                                            .fix = did_you_mean(text, field.choices, usual(field))});
}

// What a text that is no T should have been. `in_range`: it does not even look like a number that only T cannot hold.
template <typename T>
std::string wanted_number(const std::string& text, bool in_range) {
  if (in_range)
    return std::unsigned_integral<T> ? "a whole number, 0 or more" : std::integral<T> ? "a whole number" : "a number";
  if (std::integral<T>) return text.starts_with('-') ? "a larger whole number" : "a smaller whole number";
  const bool is_tiny = std::abs(std::strtod(text.c_str(), nullptr)) < 1;
  return is_tiny ? "0, or a number that is not that close to it" : "a number that is closer to 0";
}

template <typename T>
T parse_number(const ConfigField& field, const std::string& text) {
  T value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last)
    refuse(field, text, wanted_number<T>(text, error != std::errc::result_out_of_range || end != last));
  return value + T{0};  // minus zero is zero: TOML would read a written "-0" back as the integer 0
}

// The shortest text that reads back to the same bits.
inline std::string to_text(double value) {
  std::string text = strprintf("%g", value);
  for (int digits = 7; digits <= 17 && std::strtod(text.c_str(), nullptr) != value; ++digits) {
    text = strprintf("%.*g", digits, value);
  }
  return text;
}
template <std::integral T>
std::string to_text(T value) {
  return std::to_string(value);
}

// Ranges for rows. The upper limit of counts is far beyond any real use, yet small enough that products of counts fit
// 64 bits.
constexpr double kMostCounted = 0x1p40, kWeekSeconds = 7 * 24 * 3600.0;
inline ConfigRange within(double least, double most, std::string words = {}) {
  return {.least = least, .most = most, .words = std::move(words)};
}
inline ConfigRange count(double least, std::string words = {}) { return within(least, kMostCounted, std::move(words)); }
inline ConfigRange at_least(double least, std::string words = {}) {
  return within(least, std::numeric_limits<double>::max(), std::move(words));
}
inline ConfigRange above(double bound) {
  return {.least = bound, .most = std::numeric_limits<double>::max(), .without_least = true};
}
inline ConfigRange below_one() { return {.least = 0, .most = 1, .without_most = true}; }

// Access is a callable that maps TrainConfig& to T&.
template <typename Access>
auto& read(const Access& access, const TrainConfig& config) {
  return access(const_cast<TrainConfig&>(config));
}

template <typename List>
std::vector<std::string> names(const List& list) {
  return {list.begin(), list.end()};
}

// Makes the rows, group by group.
class FieldRows {
 public:
  void begin(std::string group) { group_ = std::move(group); }
  void add(ConfigField field) { rows_.emplace_back(std::move(field)).group = group_; }
  std::vector<ConfigField> take() { return std::move(rows_); }

  template <typename Access>
  void number(std::string key, Flags flags, std::string help, Access access, ConfigRange range) {
    using T = std::remove_reference_t<decltype(access(std::declval<TrainConfig&>()))>;
    ConfigField field{std::move(key), std::move(flags), std::move(help)};
    field.type = std::integral<T> ? ConfigField::Type::kInteger : ConfigField::Type::kNumber;
    field.range = std::move(range);
    field.number = [access](const TrainConfig& config) { return static_cast<double>(read(access, config)); };
    field.get = [access](const TrainConfig& config) { return to_text(read(access, config)); };
    field.set = [access, field](TrainConfig& config, const std::string& text) {
      access(config) = parse_number<T>(field, text);
    };
    add(std::move(field));
  }

  template <typename Access>
  void text(std::string key, Flags flags, std::string help, Access access, std::vector<std::string> choices = {}) {
    ConfigField field{std::move(key), std::move(flags), std::move(help), std::move(choices)};
    field.get = [access](const TrainConfig& config) { return read(access, config); };
    field.set = [access, field](TrainConfig& config, const std::string& value) {
      if (!field.choices.empty() && std::ranges::find(field.choices, value) == field.choices.end())
        refuse(field, value, "one of " + join(field.choices, ", "));
      access(config) = value;
    };
    add(std::move(field));
  }

  template <typename Access>
  void flag(std::string key, Flags flags, std::string help, Access access) {
    ConfigField field{std::move(key), std::move(flags), std::move(help)};
    field.kind = ConfigField::Kind::kFlag;
    field.type = ConfigField::Type::kBool;
    field.get = [access](const TrainConfig& config) -> std::string {
      const std::optional<bool> value = read(access, config);
      return value.has_value() ? (*value ? "true" : "false") : "auto";
    };
    field.set = [access, field](TrainConfig& config, const std::string& value) {
      if (value != "true" && value != "false") refuse(field, value, "true or false");
      access(config) = value == "true";
    };
    add(std::move(field));
  }

  // names[i] belongs to the enumerator with value i.
  template <typename Access>
  void choice(std::string key, Flags flags, std::string help, std::vector<std::string> names, Access access) {
    using T = std::remove_reference_t<decltype(access(std::declval<TrainConfig&>()))>;
    ConfigField field{std::move(key), std::move(flags), std::move(help), std::move(names)};
    field.get = [access, field](const TrainConfig& config) {
      return field.choices[static_cast<size_t>(read(access, config))];
    };
    field.set = [access, field](TrainConfig& config, const std::string& value) {
      const auto found = std::ranges::find(field.choices, value);
      if (found == field.choices.end()) refuse(field, value, "one of " + join(field.choices, ", "));
      access(config) = static_cast<T>(found - field.choices.begin());
    };
    add(std::move(field));
  }

 private:
  std::string group_;
  std::vector<ConfigField> rows_;
};

// Makes an accessor of a member, for the functions above.
#define RANKLAB_FIELD(member) \
  [](TrainConfig & c) -> auto& { return c.member; }

// Model settings: core/config/settings/model_fields.cpp.
void add_model(FieldRows& rows);
void add_rotary(FieldRows& rows);
void add_hugging_face(FieldRows& rows);
void add_latent_attention(FieldRows& rows);
void add_linear_attention(FieldRows& rows);
void add_mamba(FieldRows& rows);
void add_yarn(FieldRows& rows);
void add_experts(FieldRows& rows);
// Settings of what a run keeps in memory and in files: core/config/settings/state_fields.cpp.
void add_memory(FieldRows& rows);
void add_checkpoints(FieldRows& rows);
// Settings of monitoring: core/config/settings/watch_fields.cpp.
void add_sentinels(FieldRows& rows);
void add_dump(FieldRows& rows);
void add_museum(FieldRows& rows);
// Settings of optimizers and learning rates: core/config/settings/optim_fields.cpp, lr_fields.cpp.
void add_optimizers(FieldRows& rows);
void add_diloco(FieldRows& rows);
void add_learning_rate(FieldRows& rows);
// Settings of number formats: core/config/settings/precision_fields.cpp.
void add_precision(FieldRows& rows);
void add_context(FieldRows& rows);    // in the group "parallel"
void add_documents(FieldRows& rows);  // in the group "data"

}  // namespace ranklab::fields
