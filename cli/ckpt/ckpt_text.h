// Output text shared by the subcommands of `ranklab ckpt`. Thread rule: pure functions, or main thread where they
// print.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/checkpoint/manifest.h"
#include "core/checkpoint/tensor_diff.h"

namespace ranklab {

using LongUnsigned = unsigned long long;  // for printf

std::string both_sizes(uint64_t bytes);                            // "12345 bytes (12.1 KiB)"
std::string tensors_in_files(const CheckpointManifest& manifest);  // "81 tensors in 1 file"
// Prints as many settings as fit into a line and continues on the next one, indented; prints nothing if there are none.
void print_settings(const char* title, const std::map<std::string, std::string>& settings);
// A row of the table of tensors; the column of files is optional.
struct TensorLine {
  std::string name, type, shape;
  uint64_t bytes = 0;
  std::string file = {};
};
void print_tensors(const std::vector<TensorLine>& tensors, bool with_files = false);
std::string metadata_text(const std::string& value);     // one line, with control characters escaped for terminals
std::string difference_text(const TensorDifference& d);  // without the tensor's name
nlohmann::ordered_json difference_json(const TensorDifference& d);

}  // namespace ranklab
