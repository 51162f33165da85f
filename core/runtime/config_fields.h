// The table of every setting: its key, flags, help, and how to read and write it. The command line, `--print-config`
// and error messages are made from this one list. Adding a setting = one member of TrainConfig and one row in
// config_fields.cpp. Torch-free.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/runtime/train_config.h"

namespace ranklab {

struct ConfigField {
  enum class Kind { kValue, kFlag };  // a kFlag takes no value on the command line and has a --no- form
  enum class Type { kInteger, kNumber, kBool, kText };
  std::string key;                 // "optim.lr"
  std::vector<std::string> flags;  // "--lr"; aliases follow
  std::string group;               // heading in --help
  std::string help;
  Kind kind = Kind::kValue;
  std::vector<std::string> choices;  // of an enumeration, else empty
  std::function<void(TrainConfig&, const std::string&)>
      set;  // throws kInvalidArgument naming the flag, the text and what is wanted
  std::function<std::string(const TrainConfig&)> get;  // set() of this text gives the same value again
  Type type = Type::kText;                             // in TOML and JSON
};

const std::vector<ConfigField>& config_fields();

// Sets a field by key ("optim.lr") or flag ("--lr"). Throws kInvalidArgument with the nearest name when there is none.
void set_config_field(TrainConfig& config, const std::string& key_or_flag, const std::string& value);

}  // namespace ranklab
