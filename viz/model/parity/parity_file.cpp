#include "viz/model/parity/parity_file.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/json_integer.h"
#include "core/base/text.h"

namespace ranklab::viz {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "ranklab parity map";
constexpr uint64_t kLimitBytes = uint64_t{1} << 30;
constexpr size_t kMostRanks = 1 << 16;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
// JSON has no infinity or NaN; for this purpose they need not be distinguished.
double number_of(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

// Most cells are right and have no place, so a single number describes them.
Json to_json(const std::optional<ParityCell>& cell) {
  if (!cell) return nullptr;
  return {number(cell->eps), cell->wrong, cell->slice, cell->place, number(cell->got), number(cell->want)};
}

std::optional<ParityCell> cell_of(const Json& json) {
  if (json.is_null()) return {};
  return ParityCell{.eps = number_of(json.at(0)),
                    .wrong = json.at(1).get<bool>(),
                    .slice = json.at(2).get<std::string>(),
                    .place = json.at(3).get<std::string>(),
                    .got = number_of(json.at(4)),
                    .want = number_of(json.at(5))};
}

ParityRow row_of(const Json& json, size_t ranks) {
  ParityRow row{.step = json_integer<int64_t>(json.at("step"), "step"),
                .phase = json.at("phase").get<std::string>(),
                .name = json.at("name").get<std::string>(),
                .kind = json.at("kind").get<std::string>(),
                .allowed = number_of(json.at("allowed"))};
  for (const Json& cell : json.at("cells")) row.cells.push_back(cell_of(cell));
  if (row.cells.size() != ranks) throw std::out_of_range("a row does not have one cell per rank");
  return row;
}

ParityMap map_of(const Json& json) {
  if (json.at("format") != kFormat) throw std::out_of_range("not the format \"" + std::string(kFormat) + "\"");
  ParityMap map{.title = json.at("title").get<std::string>(),
                .reference = json.at("reference").get<std::string>(),
                .type = json.at("type").get<std::string>(),
                .verdict = json.at("verdict").get<std::string>(),
                .same = json.at("same").get<bool>(),
                .ranks = json.at("ranks").get<std::vector<std::string>>()};
  if (map.ranks.size() > kMostRanks) throw std::out_of_range("too many ranks");
  for (const Json& fact : json.at("facts"))
    map.facts.push_back({fact.at(0).get<std::string>(), fact.at(1).get<std::string>(), fact.at(2).get<bool>()});
  for (const Json& row : json.at("tensors")) map.rows.push_back(row_of(row, map.ranks.size()));
  return map;
}

}  // namespace

std::string parity_file_text(const ParityMap& map) {
  Json json = {{"format", kFormat},      {"title", map.title}, {"reference", map.reference}, {"type", map.type},
               {"verdict", map.verdict}, {"same", map.same},   {"ranks", map.ranks}};
  json["facts"] = Json::array();
  for (const ParityFact& fact : map.facts) json["facts"].push_back({fact.what, fact.text, fact.brief});
  json["tensors"] = Json::array();
  for (const ParityRow& row : map.rows) {
    Json cells = Json::array();
    for (const auto& cell : row.cells) cells.push_back(to_json(cell));
    json["tensors"].push_back({{"step", row.step},
                               {"phase", row.phase},
                               {"name", row.name},
                               {"kind", row.kind},
                               {"allowed", number(row.allowed)},
                               {"cells", std::move(cells)}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

ParityMap parse_parity_file(const std::string& text, const std::string& path) {
  std::string reason = "not a JSON object";
  try {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_object()) return map_of(json);
  } catch (const std::exception& error) {
    reason = error.what();
  }
  throw Error(ErrorKind::kBadFile, {.where = path,
                                    .what = "not a file of ranklab parity",
                                    .got = reason,
                                    .want = "what ranklab parity --out FILE.json writes",
                                    .fix = "write it again"});
}

ParityMap read_parity_file(const std::string& path) {
  return parse_parity_file(
      read_whole_file(path, kLimitBytes, {.where = path, .fix = "ranklab parity --out FILE.json writes one"}), path);
}

std::string parity_file_beside(const std::string& trace) {
  std::error_code ignored;
  const std::filesystem::path beside = std::filesystem::path(trace).parent_path() / "parity.json";
  const bool there = std::filesystem::is_regular_file(beside, ignored);
  return there && is_parity_file(beside.string()) ? beside.string() : "";
}

bool is_parity_file(const std::string& path) {
  if (!path.ends_with(".json")) return false;
  try {
    InputFile file(path, {});
    std::string begin(64, '\0');
    begin.resize(file.read_some(begin));
    return begin.starts_with("{\"format\":\"" + std::string(kFormat) + "\"");
  } catch (const Error&) {
    return false;
  }
}

}  // namespace ranklab::viz
