// Which model options exclude each other, in one table: validate() refuses models by it, and it is part of the table of
// combinations (core/config/requirements.h). A constraint between numbers is no row: it is checked in validate().
// Torch-free. Thread rule: immutable.
#pragma once
#include <span>
#include <string>
#include <utility>

#include "core/spec/model_config.h"

namespace ranklab {

struct ModelOption {
  std::pair<std::string, std::string> setting;  // one way to choose it: a key of config_fields(), and a value
  bool (*chosen)(const ModelConfig&);
  std::string (*shown)(const ModelConfig&);  // as on a command line
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
