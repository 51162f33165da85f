// The table of every setting: its key, flags, help, and how to read and write it. The command line, `--print-config`
// and error messages are made from this one list. Adding a setting = one member of TrainConfig and one row in
// fields.cpp. Torch-free.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

// The legal values of a number. NaN and infinities are never legal.
struct ConfigRange {
  double least = 0, most = 0;
  bool without_least = false, without_most = false;  // the bound itself is not legal
  std::string words = {};                            // for a message; empty: derived from the bounds

  bool holds(double value) const;
  std::string text() const;  // "1 to 64", "0 or more", "above 0"
};

struct ConfigField {
  enum class Kind { kValue, kFlag };  // a kFlag takes no value on the command line and has a --no- form
  enum class Type { kInteger, kNumber, kBool, kText };
  std::string key;                 // "optim.lr"
  std::vector<std::string> flags;  // "--lr"; aliases follow
  std::string help;
  std::vector<std::string> choices = {};  // of an enumeration; otherwise empty
  std::string group = {};                 // heading in --help
  Kind kind = Kind::kValue;
  // throws kInvalidArgument naming the flag, the text and what is wanted
  std::function<void(TrainConfig&, const std::string&)> set = {};
  std::function<std::string(const TrainConfig&)> get = {};  // calling set() with this text restores the same value
  Type type = Type::kText;                                  // its type in TOML and JSON
  ConfigRange range = {};                                   // for kInteger and kNumber
  std::function<double(const TrainConfig&)> number = {};
};

const std::vector<ConfigField>& config_fields();
const ConfigField* find_field(const std::string& key);  // null: no such key

// By key ("optim.lr") or flag ("--lr"). Throws kInvalidArgument with the nearest name when it is unknown.
const ConfigField& field_named(const std::string& key_or_flag);

// Whether it is a model setting, whose value comes from a preset.
bool is_model_setting(std::string_view key);

// The setting as typed on a command line: "--tp 2", "--no-bf16". REQUIRES: the setting has a flag.
std::string words_of(const ConfigField& field, const std::string& value);

// Checks every number against its range. Throws kInvalidArgument naming the flag.
void check_ranges(const TrainConfig& config);

// Sets the field with that name (field_named()).
void set_config_field(TrainConfig& config, const std::string& key_or_flag, const std::string& value);

}  // namespace ranklab
