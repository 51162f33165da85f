#include "cli/config/torchtitan_stages.h"

#include <charconv>
#include <sstream>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr const char* kPoints = "parallelism.pipeline_parallel_split_points";
constexpr const char* kParts = "parallelism.module_fqns_per_model_part";

[[noreturn]] void refuse_names(const char* key, const std::string& got, int64_t layers) {
  throw Error(
      ErrorKind::kInvalidArgument,
      {.where = "config from-torchtitan",
       .what = std::string(key) + " does not split the model into consecutive stages",
       .got = quote(got),
       .want = strprintf("tok_embeddings, layers.0 to layers.%lld, norm and output, each once and in this order",
                         static_cast<long long>(layers - 1)),
       .fix = "correct it"});
}

std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, between);) {
    std::erase_if(part, [](char c) { return c == ' ' || c == '[' || c == ']' || c == '"' || c == '\''; });
    parts.push_back(part);
  }
  return parts;
}

// The layer at which a stage with this module begins or continues: 3 for "layers.3", `layers` for modules after all
// layers.
std::optional<int64_t> place_of(std::string_view name, int64_t layers) {
  if (name == "norm" || name == "output") return layers;
  if (!name.starts_with("layers.")) return std::nullopt;
  name.remove_prefix(std::string_view("layers.").size());
  int64_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc{} || end != name.data() + name.size() || layer < 0 || layer >= layers) return std::nullopt;
  return layer;
}

std::vector<int64_t> stages_from(const std::string& points, int64_t layers) {
  std::vector<int64_t> stages;
  int64_t before = 0;
  for (const std::string& name : split(points, ',')) {
    const auto place = place_of(name, layers);
    if (!place || *place < before) refuse_names(kPoints, points, layers);
    stages.push_back(*place - before);
    before = *place;
  }
  stages.push_back(layers - before);
  return stages;
}

std::vector<int64_t> stages_of(const std::string& parts, int64_t layers) {
  std::vector<int64_t> stages;
  int64_t next = 0;
  for (const std::string& part : split(parts, ';')) {
    stages.push_back(0);
    for (const std::string& name : split(part, ',')) {
      if (name == "tok_embeddings" && stages.size() == 1 && stages[0] == 0) continue;
      const auto place = place_of(name, layers);
      if (place != next) refuse_names(kParts, parts, layers);
      if (*place == layers) continue;
      ++stages.back();
      ++next;
    }
  }
  if (next != layers) refuse_names(kParts, parts, layers);
  return stages;
}

}  // namespace

std::optional<std::vector<int64_t>> titan_stages(const TorchtitanWords& words, int64_t layers) {
  const std::string parts = words.text(kParts, ""), points = words.text(kPoints, "");
  if (!parts.empty()) return stages_of(parts, layers);
  if (!points.empty()) return stages_from(points, layers);
  return std::nullopt;
}

}  // namespace ranklab
