#include "cli/ckpt/ckpt_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/checkpoint/read_only_file.h"
#include "core/checkpoint/safetensors_header.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

// JSON cannot represent infinity.
ordered_json finite_json(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json("Infinity"); }

}  // namespace

std::string tensors_in_files(const CheckpointManifest& manifest) {
  return counted(static_cast<int64_t>(manifest.tensors.size()), "tensor") + " in " +
         counted(static_cast<int64_t>(manifest.files.size()), "file");
}

std::string both_sizes(uint64_t bytes) {
  std::string text = std::to_string(bytes) + " bytes";
  return bytes < 1024 ? text : text + " (" + human_bytes(static_cast<double>(bytes)) + ")";
}

std::string metadata_text(const std::string& value) {
  constexpr size_t kLongest = 100;
  const std::string text = ordered_json(value).dump(-1, ' ', true);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "... (" + std::to_string(value.size()) + " bytes)";
}

void print_tensors(const std::vector<TensorLine>& tensors, bool with_files) {
  size_t name_width = 4, shape_width = 5;
  for (const TensorLine& tensor : tensors) {
    name_width = std::max(name_width, tensor.name.size());
    shape_width = std::max(shape_width, tensor.shape.size());
  }
  const auto names = static_cast<int>(name_width), sizes = static_cast<int>(shape_width);
  const auto last = [&](const std::string& file) { return with_files ? "  " + file : ""; };
  std::printf("%-*s  %-7s  %-*s  %14s%s\n", names, "name", "dtype", sizes, "shape", "bytes", last("file").c_str());
  for (const TensorLine& tensor : tensors)
    std::printf("%-*s  %-7s  %-*s  %14llu%s\n", names, tensor.name.c_str(), tensor.type.c_str(), sizes,
                tensor.shape.c_str(), static_cast<LongUnsigned>(tensor.bytes), last(tensor.file).c_str());
}

void print_settings(const char* title, const std::map<std::string, std::string>& settings) {
  constexpr size_t kLongest = 120;
  if (settings.empty()) return;
  std::string text, line = std::string(title) + ":";
  for (const auto& [key, value] : settings) {
    const std::string setting = " " + printable(key) + " " + printable(value);
    if (line.back() != ':') line += ",";
    if (line.size() + setting.size() > kLongest) {
      text += line + "\n";
      line = " ";
    }
    line += setting;
  }
  std::printf("%s%s\n", text.c_str(), line.c_str());
}

std::string difference_text(const TensorDifference& d) {
  using Kind = TensorDifference::Kind;
  switch (d.kind) {
    case Kind::kOnlyInA:
      return "only in a: " + d.a;
    case Kind::kOnlyInB:
      return "only in b: " + d.b;
    case Kind::kType:
      return "different type: " + d.a + " in a, " + d.b + " in b";
    case Kind::kShape:
      return "different shape: " + d.a + " in a, " + d.b + " in b";
    case Kind::kValues:
      break;
  }
  std::string text = strprintf("%llu of %llu elements differ, the first at %s", static_cast<LongUnsigned>(d.differing),
                               static_cast<LongUnsigned>(d.elements), shape_text(d.first).c_str());
  if (d.has_values) text += strprintf("; at most by %.6g, relative %.6g", d.max_absolute, d.max_relative);
  return d.a + ": " + text;
}

ordered_json difference_json(const TensorDifference& d) {
  constexpr const char* kKinds[] = {"only_in_a", "only_in_b", "dtype", "shape", "values"};
  ordered_json row = {{"name", d.name}, {"kind", kKinds[static_cast<size_t>(d.kind)]}, {"a", d.a}, {"b", d.b}};
  if (d.kind == TensorDifference::Kind::kValues) {
    row["elements"] = d.elements;
    row["differing"] = d.differing;
    row["first"] = d.first;
  }
  if (d.has_values) {
    row["max_absolute"] = finite_json(d.max_absolute);
    row["max_relative"] = finite_json(d.max_relative);
  }
  return row;
}

}  // namespace ranklab
