#include "cli/common/json_output.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace ranklab {
namespace {

// File names may contain any bytes.
std::string text(const nlohmann::ordered_json& object, int indent) {
  return object.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string json_result(const nlohmann::ordered_json& data, const std::vector<std::string>& warnings, int indent) {
  return text({{"schema", 1}, {"ok", true}, {"data", data}, {"warnings", warnings}}, indent);
}

std::string json_error(const std::exception& error, const nlohmann::ordered_json& data, int code) {
  const auto* known = dynamic_cast<const Error*>(&error);
  const nlohmann::ordered_json content = {
      {"code", code}, {"message", error.what()}, {"hint", known != nullptr ? known->text().fix : ""}};
  return text(
      {{"schema", 1}, {"ok", false}, {"data", data}, {"warnings", nlohmann::ordered_json::array()}, {"error", content}},
      -1);
}

std::string json_error(const std::exception& error) { return json_error(error, nullptr, exit_code_of(error)); }

int exit_code_of(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return known != nullptr ? exit_code(known->kind()) : 1;
}

}  // namespace ranklab
