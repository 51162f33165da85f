#include "core/config/settings/schema.h"

#include <nlohmann/json.hpp>

#include "core/config/settings/fields.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

using Json = nlohmann::ordered_json;
using Type = ConfigField::Type;

Json describe(const ConfigField& field, const TrainConfig& defaults) {
  Json row;
  row["description"] = field.help + " (" + field.flags[0] + ")";
  const std::string value = field.get(defaults);
  switch (field.type) {
    case Type::kInteger:
      row["type"] = "integer";
      row["default"] = Json::parse(value);
      break;
    case Type::kNumber:
      row["type"] = "number";
      row["default"] = Json::parse(value);
      break;
    case Type::kBool:
      row["type"] = "boolean";
      if (value != "auto") row["default"] = value == "true";
      break;
    case Type::kText:
      row["type"] = "string";
      row["default"] = value;
      break;
  }
  if (!field.choices.empty()) row["enum"] = field.choices;
  if (field.key == "model.preset") {
    for (const ModelPreset& preset : model_presets()) row["enum"].push_back(preset.name);
  }
  return row;
}

}  // namespace

std::string config_json_schema() {
  TrainConfig defaults;
  defaults.model = model_preset(defaults.preset);
  Json schema;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "ranklab configuration";
  schema["type"] = "object";
  schema["additionalProperties"] = false;
  for (const ConfigField& field : config_fields()) {
    const size_t dot = field.key.find('.');
    Json& table = schema["properties"][field.key.substr(0, dot)];
    table["type"] = "object";
    table["additionalProperties"] = false;
    table["properties"][field.key.substr(dot + 1)] = describe(field, defaults);
  }
  return schema.dump(2) + "\n";
}

}  // namespace ranklab
