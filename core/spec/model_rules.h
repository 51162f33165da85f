// Which model options exclude each other, in one table. validate() refuses models that break a rule, and the table of
// combinations (core/config/requirements.h) includes these rules. A constraint between numbers is not a rule here;
// validate() checks it. Torch-free. Thread rule: immutable.
#pragma once
#include <span>
#include <string>
#include <utility>

#include "core/spec/model_config.h"

namespace ranklab {

struct ModelOption {
  std::pair<std::string, std::string> setting;  // one way to select it: a key of config_fields(), and a value
  bool (*chosen)(const ModelConfig&);
  std::string (*shown)(const ModelConfig&);  // as typed on a command line
};

struct ModelRule {
  ModelOption option, excluded;
  std::string why;
  std::string instead;
};

std::span<const ModelRule> model_rules();

// Throws kInvalidArgument for the first rule that the model breaks.
void check_model_rules(const ModelConfig& config);

}  // namespace ranklab
