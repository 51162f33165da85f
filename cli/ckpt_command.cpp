// ranklab ckpt inspect | verify | diff: what lies in safetensors files, whether it is whole, and where two of them
// differ.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/json_output.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/checksum.h"
#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/tensor_diff.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

struct CkptOptions {
  std::string file, other;
  bool json = false;
};

using LongUnsigned = unsigned long long;

// "12345 bytes (12.1 KiB)"
std::string both_sizes(uint64_t bytes) {
  std::string text = std::to_string(bytes) + " bytes";
  return bytes < 1024 ? text : text + " (" + human_bytes(static_cast<double>(bytes)) + ")";
}

ordered_json json_of(const SafetensorsFile& file) {
  ordered_json tensors = ordered_json::array(), checksums;
  for (const TensorEntry& tensor : file.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", name(tensor.type)},
                       {"shape", tensor.shape},
                       {"bytes", tensor.size_bytes()},
                       {"offset", tensor.begin}});
  }
  if (file.checksums()) {
    checksums = {{"algorithm", "xxh3"},
                 {"chunk_bytes", file.checksums()->chunk_bytes},
                 {"header", xxh3_text(file.checksums()->header)}};
  }
  return {{"file", file.path()},
          {"bytes", file.file_bytes()},
          {"tensors", tensors},
          {"metadata", file.metadata()},
          {"checksums", checksums}};
}

// One line, with escapes for what a terminal should not get.
std::string metadata_text(const std::string& value) {
  constexpr size_t kLongest = 100;
  const std::string text = ordered_json(value).dump(-1, ' ', true);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "... (" + std::to_string(value.size()) + " bytes)";
}

void print_table(const SafetensorsFile& file) {
  std::vector<std::string> shapes;
  size_t name_width = 4, shape_width = 5;
  for (const TensorEntry& tensor : file.tensors()) {
    shapes.push_back(shape_text(tensor.shape));
    name_width = std::max(name_width, tensor.name.size());
    shape_width = std::max(shape_width, shapes.back().size());
  }
  const auto names = static_cast<int>(name_width), sizes = static_cast<int>(shape_width);
  std::printf("%-*s  %-7s  %-*s  %14s\n", names, "name", "dtype", sizes, "shape", "bytes");
  for (size_t i = 0; i < shapes.size(); ++i) {
    const TensorEntry& tensor = file.tensors()[i];
    std::printf("%-*s  %-7s  %-*s  %14llu\n", names, tensor.name.c_str(), std::string(name(tensor.type)).c_str(), sizes,
                shapes[i].c_str(), static_cast<LongUnsigned>(tensor.size_bytes()));
  }
}

int inspect(const CkptOptions& options) {
  const SafetensorsFile file(options.file);
  if (options.json) {
    std::printf("%s", json_result(json_of(file)).c_str());
    return 0;
  }
  std::printf("%s: %zu tensors, %s\n", file.path().c_str(), file.tensors().size(),
              both_sizes(file.file_bytes()).c_str());
  if (file.checksums()) {
    std::printf("checksums: xxh3 of every %s, %s for the whole\n", both_sizes(file.checksums()->chunk_bytes).c_str(),
                xxh3_text(file.checksums()->header).c_str());
  } else {
    std::printf("checksums: none\n");
  }
  for (const auto& [key, value] : file.metadata())
    std::printf("metadata: %s = %s\n", metadata_text(key).c_str(), metadata_text(value).c_str());
  std::printf("\n");
  print_table(file);
  return 0;
}

int verify(const CkptOptions& options) {
  const SafetensorsFile file(options.file);
  const std::vector<DamagedChunk> damaged = file.damaged_chunks();
  for (const DamagedChunk& chunk : damaged) {
    if (options.json) break;  // stdout is the error's object
    std::printf("damaged: tensor %s, bytes %llu to %llu, file offset %llu\n", quote(chunk.tensor).c_str(),
                static_cast<LongUnsigned>(chunk.begin), static_cast<LongUnsigned>(chunk.end),
                static_cast<LongUnsigned>(chunk.file_offset));
  }
  if (!damaged.empty()) file.verify();  // throws, naming the first
  if (options.json) {
    std::printf("%s", json_result({{"file", file.path()},
                                   {"bytes", file.file_bytes()},
                                   {"tensors", file.tensors().size()},
                                   {"checksums", file.checksums().has_value()}})
                          .c_str());
    return 0;
  }
  std::printf("%s: sound, %zu tensors, %s; %s\n", file.path().c_str(), file.tensors().size(),
              both_sizes(file.file_bytes()).c_str(),
              file.checksums() ? "every checksum holds"
                               : "it has no checksums, so a flipped bit in a tensor would not be seen");
  return 0;
}

std::string describe(const TensorDifference& d) {
  using Kind = TensorDifference::Kind;
  switch (d.kind) {
    case Kind::kOnlyInA:
      return "only in a: " + d.a;
    case Kind::kOnlyInB:
      return "only in b: " + d.b;
    case Kind::kType:
      return "another type: " + d.a + " in a, " + d.b + " in b";
    case Kind::kShape:
      return "another shape: " + d.a + " in a, " + d.b + " in b";
    case Kind::kValues:
      break;
  }
  std::string text = strprintf("%llu of %llu elements differ, the first at %s", static_cast<LongUnsigned>(d.differing),
                               static_cast<LongUnsigned>(d.elements), shape_text(d.first).c_str());
  if (d.has_values) text += strprintf("; at most by %.6g, relative %.6g", d.max_absolute, d.max_relative);
  return d.a + ": " + text;
}

// JSON has no infinity.
ordered_json number_json(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json("Infinity"); }

ordered_json json_of(const SafetensorsDifference& diff) {
  constexpr const char* kKinds[] = {"only_in_a", "only_in_b", "dtype", "shape", "values"};
  ordered_json tensors = ordered_json::array();
  for (const TensorDifference& d : diff.tensors) {
    ordered_json row = {{"name", d.name}, {"kind", kKinds[static_cast<size_t>(d.kind)]}, {"a", d.a}, {"b", d.b}};
    if (d.kind == TensorDifference::Kind::kValues) {
      row["elements"] = d.elements;
      row["differing"] = d.differing;
      row["first"] = d.first;
    }
    if (d.has_values) {
      row["max_absolute"] = number_json(d.max_absolute);
      row["max_relative"] = number_json(d.max_relative);
    }
    tensors.push_back(std::move(row));
  }
  return {{"same", diff.tensors.empty()},
          {"same_tensors", diff.same_tensors},
          {"different", tensors},
          {"metadata", diff.metadata}};
}

int diff(const CkptOptions& options) {
  const SafetensorsDifference diff = diff_safetensors(SafetensorsFile(options.file), SafetensorsFile(options.other));
  const int code = diff.tensors.empty() ? 0 : exit_code(ErrorKind::kCheckFailed);
  if (options.json) {
    std::printf("%s", json_result(json_of(diff)).c_str());
    return code;
  }
  std::printf("a: %s\nb: %s\n", options.file.c_str(), options.other.c_str());
  for (const TensorDifference& d : diff.tensors) std::printf("%s: %s\n", d.name.c_str(), describe(d).c_str());
  std::vector<std::string> keys;
  for (const std::string& key : diff.metadata) keys.push_back(metadata_text(key));
  if (!keys.empty()) std::printf("metadata that differs (does not count): %s\n", join(keys, ", ").c_str());
  if (diff.tensors.empty()) {
    std::printf("the same: %llu tensors, bit for bit\n", static_cast<LongUnsigned>(diff.same_tensors));
  } else {
    std::printf("tensors that differ: %zu, the same: %llu\n", diff.tensors.size(),
                static_cast<LongUnsigned>(diff.same_tensors));
  }
  return code;
}

}  // namespace

CommandAction setup_ckpt(CLI::App& app) {
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab ckpt inspect model.safetensors\n  ranklab ckpt verify model.safetensors\n"
      "  ranklab ckpt diff before.safetensors after.safetensors");
  auto options = std::make_shared<CkptOptions>();
  CLI::App* show = app.add_subcommand("inspect", "print a safetensors file's tensors and metadata");
  show->add_option("FILE", options->file, "a safetensors file")->required();
  CLI::App* prove = app.add_subcommand("verify", "check a safetensors file's form and every checksum");
  prove->add_option("FILE", options->file, "a safetensors file")->required();
  CLI::App* compare = app.add_subcommand("diff", "where the tensors of two files differ; exit code 4 when they do");
  compare->add_option("A", options->file, "a safetensors file")->required();
  compare->add_option("B", options->other, "the one to hold against it")->required();
  for (CLI::App* command : {show, prove, compare}) command->add_flag("--json", options->json, "print one JSON object");
  return [&app, options, show, prove, compare] {
    if (show->parsed()) return inspect(*options);
    if (prove->parsed()) return verify(*options);
    if (compare->parsed()) return diff(*options);
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
