#include "cli/ckpt/ckpt_folder.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/ckpt/ckpt_text.h"
#include "cli/common/json_output.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/checkpoint_diff.h"
#include "core/checkpoint/run_folder.h"
#include "core/runtime/checkpoint/settings.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

uint64_t tensor_bytes(const StoredTensor& tensor) {
  return static_cast<uint64_t>(shape_elements(tensor.shape)) * size_bytes(tensor.type);
}

ordered_json json_of(const Checkpoint& checkpoint) {
  const CheckpointManifest& manifest = checkpoint.manifest();
  ordered_json tensors = ordered_json::array(), files = ordered_json::array();
  for (const auto& [name, tensor] : manifest.tensors) {
    tensors.push_back({{"name", name},
                       {"dtype", ranklab::name(tensor.type)},
                       {"shape", tensor.shape},
                       {"bytes", tensor_bytes(tensor)},
                       {"pieces", tensor.slices.size()}});
  }
  for (const CheckpointFile& file : manifest.files) files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  return {{"folder", checkpoint.folder()},
          {"step", manifest.step},
          {"updates", manifest.updates},
          {"consumed_samples", manifest.consumed_samples},
          {"bytes", checkpoint.file_bytes()},
          {"layout", manifest.layout},
          {"model", manifest.model},
          {"config", manifest.config},
          {"data", manifest.data},
          {"metrics", manifest.metrics},
          {"loss_scale", manifest.loss_scale},
          {"sentinels", manifest.sentinels},
          {"files", files},
          {"tensors", tensors}};
}

void print_table(const CheckpointManifest& manifest) {
  size_t name_width = 4, shape_width = 5;
  for (const auto& [name, tensor] : manifest.tensors) {
    name_width = std::max(name_width, name.size());
    shape_width = std::max(shape_width, shape_text(tensor.shape).size());
  }
  const auto names = static_cast<int>(name_width), shapes = static_cast<int>(shape_width);
  std::printf("\n%-*s  %-5s  %-*s  %12s  %6s\n", names, "name", "dtype", shapes, "shape", "bytes", "pieces");
  for (const auto& [name, tensor] : manifest.tensors) {
    std::printf("%-*s  %-5s  %-*s  %12llu  %6zu\n", names, name.c_str(),
                std::string(ranklab::name(tensor.type)).c_str(), shapes, shape_text(tensor.shape).c_str(),
                static_cast<LongUnsigned>(tensor_bytes(tensor)), tensor.slices.size());
  }
}

ordered_json json_of(const CheckpointDifference& diff) {
  ordered_json tensors = ordered_json::array();
  for (const TensorDifference& d : diff.tensors) tensors.push_back(difference_json(d));
  return {{"same", diff.same()},
          {"same_tensors", diff.same_tensors},
          {"different", tensors},
          {"progress", diff.progress},
          {"settings", diff.settings}};
}

}  // namespace

int inspect_checkpoint(const std::string& folder, bool json) {
  const Checkpoint checkpoint(checkpoint_named(folder));
  if (json) {
    std::printf("%s", json_result(json_of(checkpoint)).c_str());
    return 0;
  }
  const CheckpointManifest& manifest = checkpoint.manifest();
  std::printf("%s: %s, %s, %s\n", checkpoint.folder().c_str(), origin_text(manifest).c_str(),
              tensors_in_files(manifest).c_str(), both_sizes(checkpoint.file_bytes()).c_str());
  std::printf("training: %lld updates, %lld samples consumed\n", static_cast<long long>(manifest.updates),
              static_cast<long long>(manifest.consumed_samples));
  for (const auto& [key, value] : manifest.metrics) std::printf("%s: %g\n", printable(key).c_str(), value);
  for (const auto& [key, value] : manifest.loss_scale)
    std::printf("loss scale, %s: %.10g\n", printable(key).c_str(), value);
  print_settings("model", manifest.model);
  print_settings("data", manifest.data);
  print_table(manifest);
  return 0;
}

int verify_checkpoint(const std::string& folder, bool json) {
  const Checkpoint checkpoint(checkpoint_named(folder));
  checkpoint.verify();
  if (json) {
    std::printf("%s", json_result({{"folder", checkpoint.folder()},
                                   {"step", checkpoint.manifest().step},
                                   {"bytes", checkpoint.file_bytes()},
                                   {"tensors", checkpoint.manifest().tensors.size()},
                                   {"files", checkpoint.manifest().files.size()}})
                          .c_str());
    return 0;
  }
  std::printf("%s: sound, %s, %s, %s; every checksum holds\n", checkpoint.folder().c_str(),
              origin_text(checkpoint.manifest()).c_str(), tensors_in_files(checkpoint.manifest()).c_str(),
              both_sizes(checkpoint.file_bytes()).c_str());
  return 0;
}

int diff_checkpoint_folders(const std::string& a, const std::string& b, bool json) {
  const Checkpoint left(checkpoint_named(a)), right(checkpoint_named(b));
  const CheckpointDifference diff = diff_checkpoints(left, right);
  const int code = diff.same() ? 0 : exit_code(ErrorKind::kCheckFailed);
  if (json) {
    std::printf("%s", json_result(json_of(diff)).c_str());
    return code;
  }
  std::printf("a: %s: %s\nb: %s: %s\n", left.folder().c_str(), origin_text(left.manifest()).c_str(),
              right.folder().c_str(), origin_text(right.manifest()).c_str());
  for (const std::string& line : diff.progress) std::printf("%s\n", line.c_str());
  for (const TensorDifference& d : diff.tensors) std::printf("%s: %s\n", d.name.c_str(), difference_text(d).c_str());
  if (!diff.settings.empty())
    std::printf("settings that differ (ignored): %s\n", printable(join(diff.settings, ", "), 2000).c_str());
  if (diff.tensors.empty()) {
    std::printf("the same: %llu tensors, bit for bit\n", static_cast<LongUnsigned>(diff.same_tensors));
  } else {
    std::printf("tensors that differ: %zu, the same: %llu\n", diff.tensors.size(),
                static_cast<LongUnsigned>(diff.same_tensors));
  }
  return code;
}

}  // namespace ranklab
