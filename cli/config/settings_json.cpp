#include "cli/config/settings_json.h"

#include <nlohmann/json.hpp>

#include "core/config/settings/fields.h"

namespace ranklab {

nlohmann::ordered_json settings_json(const TrainConfig& config) {
  nlohmann::ordered_json data = nlohmann::ordered_json::object();
  for (const ConfigField& field : config_fields()) {
    const std::string value = field.get(config);
    if (field.type == ConfigField::Type::kText) {
      data[field.key] = value;
    } else {
      data[field.key] = value == "auto" ? nlohmann::ordered_json() : nlohmann::ordered_json::parse(value);
    }
  }
  return data;
}

}  // namespace ranklab
