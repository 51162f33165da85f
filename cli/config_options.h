// The settings table (core/runtime/config_fields.h) as command-line options.
#pragma once
#include <memory>
#include <string>

#include "core/runtime/train_config.h"

namespace CLI {
class App;
}

namespace ranklab {

class ConfigOptions {
 public:
  // Declares one option per field on `app`, grouped as in the table. `defaults` are the values of flags that are not
  // given, below the preset's.
  explicit ConfigOptions(CLI::App& app, TrainConfig defaults = {});
  ~ConfigOptions();
  // After parsing: the defaults, then the preset, then the given flags.
  TrainConfig config() const;
  // Whether the user gave this field ("parallel.tp").
  bool given(const std::string& key) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ranklab
