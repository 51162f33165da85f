#include "core/config/settings/toml.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"
#include "core/base/toml/toml_file.h"
#include "core/base/toml/toml_string.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/nearest_key.h"

namespace ranklab {
namespace {

using Type = ConfigField::Type;

std::string at_line(const std::string& name, const toml::node& node) {
  return name + ":" + std::to_string(node.source().begin.line);
}

// Seeds reach 2^64, TOML's integers 2^63: larger numbers are written as strings.
bool too_large_for_toml(const std::string& text) {
  int64_t value = 0;
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc::result_out_of_range;
}

std::string exact_text(double value) {
  std::string text;
  // Not std::stod, which throws at numbers below the smallest normal one.
  for (int digits = 6; digits <= 17 && (text.empty() || std::strtod(text.c_str(), nullptr) != value); ++digits) {
    text = strprintf("%.*g", digits, value);
  }
  return text;
}

std::string type_name(const ConfigField& field) {
  switch (field.type) {
    case Type::kInteger:
      return "an integer";
    case Type::kNumber:
      return "a number";
    case Type::kBool:
      return "true or false";
    case Type::kText:
      break;
  }
  return field.choices.empty() ? "a string in quotes" : "one of \"" + join(field.choices, "\", \"") + "\"";
}

std::string toml_type_name(const toml::node& node) {
  std::ostringstream out;
  out << node.type();
  return out.str();
}

// A number as the file has it, where the parser read 0 because it is closer to 0 than a double can be: the setting's
// own check then refuses it. Otherwise "".
std::string too_small_for_toml(const std::string& text, const toml::node& node) {
  const toml::source_region& at = node.source();
  if (*node.value<double>() != 0 || at.begin.line != at.end.line) return "";
  std::istringstream lines(text);
  std::string line;
  for (toml::source_index i = 0; i < at.begin.line; ++i) std::getline(lines, line);
  std::string number = line.substr(std::min<size_t>(at.begin.column - 1, line.size()), at.end.column - at.begin.column);
  std::erase(number, '_');
  const std::string digits = number.substr(0, number.find_first_of("eE"));
  return digits.find_first_of("123456789") == std::string::npos ? "" : number;
}

std::string value_text(const ConfigField& field, const toml::node& node, const std::string& text,
                       const std::string& place) {
  if (field.type == Type::kBool && node.is_boolean()) return *node.value<bool>() ? "true" : "false";
  if (field.type == Type::kText && node.is_string()) return *node.value<std::string>();
  if ((field.type == Type::kInteger || field.type == Type::kNumber) && node.is_integer())
    return std::to_string(*node.value<int64_t>());
  if (field.type == Type::kNumber && node.is_floating_point()) {
    const std::string tiny = too_small_for_toml(text, node);
    return tiny.empty() ? exact_text(*node.value<double>()) : tiny;
  }
  if (field.type == Type::kInteger && node.is_string() && too_large_for_toml(*node.value<std::string>()))
    return *node.value<std::string>();
  throw Error(ErrorKind::kInvalidArgument, {.where = place,
                                            .what = field.key + " has the wrong type",
                                            .got = "a value of type " + toml_type_name(node),
                                            .want = type_name(field),
                                            .fix = "correct it there; ranklab config schema lists each type"});
}

[[noreturn]] void refuse_unknown(const std::string& key, const std::string& place) {
  const std::string nearest = nearest_config_key(key);
  const size_t dot = nearest.find('.');
  throw Error(ErrorKind::kInvalidArgument, {.where = place,
                                            .what = "unknown setting",
                                            .got = quote(key),
                                            .fix = nearest.empty() ? "remove it; ranklab config schema lists every key"
                                                                   : "did you mean " + quote(nearest.substr(dot + 1)) +
                                                                         " in [" + nearest.substr(0, dot) + "]?"});
}

std::string toml_value(const ConfigField& field, const std::string& value) {
  const bool quoted = field.type == Type::kText || (field.type == Type::kInteger && too_large_for_toml(value));
  return quoted ? toml_string(value) : value;
}

// A TOML table may be opened only once, so rows are collected by table, in the order in which the tables first appear.
class Tables {
 public:
  void add(const ConfigField& field, const std::string& value, bool left_out, const std::string& note) {
    const size_t dot = field.key.find('.');
    const std::string table = field.key.substr(0, dot);
    if (!rows_.contains(table)) order_.push_back(table);
    const bool derived = field.type == Type::kBool && value == "auto";
    std::string row = field.key.substr(dot + 1) + " = " + toml_value(field, value);
    if (derived || left_out) row = "# " + row + " (derived)";
    rows_[table] += note.empty() ? row + "\n" : strprintf("%-44s # %s\n", row.c_str(), note.c_str());
  }
  std::string text() const {
    std::string text;
    for (const std::string& table : order_) text += (text.empty() ? "[" : "\n[") + table + "]\n" + rows_.at(table);
    return text;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::string> rows_;
};

}  // namespace

std::vector<ConfigSetting> parse_config_toml(const std::string& text, const std::string& name) {
  const toml::table root = parse_toml(text, name, "ranklab train --print-config shows how a file looks");
  std::vector<std::pair<uint32_t, ConfigSetting>> found;
  for (const auto& [table_key, table_node] : root) {
    const std::string table_name(table_key.str());
    const toml::table* table = table_node.as_table();
    if (table == nullptr) refuse_unknown(table_name, at_line(name, table_node));
    for (const auto& [key, node] : *table) {
      const std::string full = table_name + "." + std::string(key.str());
      const std::string place = at_line(name, node);
      const ConfigField* field = find_field(full);
      if (field == nullptr) refuse_unknown(full, place);
      found.push_back({node.source().begin.line, {full, value_text(*field, node, text, place), place}});
    }
    if (table->empty() && nearest_config_key(table_name + ".").empty()) {
      refuse_unknown(table_name, at_line(name, table_node));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ConfigSetting> settings;
  for (auto& [line, setting] : found) settings.push_back(std::move(setting));
  return settings;
}

std::vector<ConfigSetting> read_config_toml(const std::string& path) {
  constexpr size_t kLimitBytes = 4 << 20;
  return parse_config_toml(
      read_whole_file(
          path, kLimitBytes,
          {.where = "--config", .fix = "ranklab train --print-config > FILE writes one", .take_open_pipe = true}),
      path);
}

std::string config_toml(const TrainConfig& config, const std::function<std::string(const std::string&)>& remark,
                        const std::vector<std::string>& left_out) {
  Tables tables;
  for (const ConfigField& field : config_fields()) {
    const bool left = std::find(left_out.begin(), left_out.end(), field.key) != left_out.end();
    tables.add(field, field.get(config), left, remark ? remark(field.key) : "");
  }
  return tables.text();
}

std::string given_toml(const MergedConfig& merged, const std::vector<ConfigSetting>& given) {
  Tables tables;
  for (const ConfigField& field : config_fields()) {
    const auto found = std::ranges::find(given, field.key, &ConfigSetting::key);
    if (found != given.end()) tables.add(field, field.get(merged.config), /*left_out=*/false, found->origin);
  }
  return tables.text();
}

}  // namespace ranklab
