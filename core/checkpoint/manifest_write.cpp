#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/manifest_hash.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

ordered_json slice_json(const StoredSlice& stored) {
  ordered_json ranges = ordered_json::array();
  for (const auto& [begin, end] : stored.slice.partition.ranges) ranges.push_back({begin, end});
  return {{"file", stored.file},
          {"key", stored.key},
          {"partition", {{"dim", stored.slice.partition.dim}, {"ranges", std::move(ranges)}}},
          {"begin", stored.slice.begin},
          {"end", stored.slice.end}};
}

ordered_json tensors_json(const std::map<std::string, StoredTensor>& tensors) {
  ordered_json all = ordered_json::object();
  auto& members = all.get_ref<ordered_json::object_t&>();  // operator[] would scan all earlier keys
  for (const auto& [tensor, stored] : tensors) {
    ordered_json slices = ordered_json::array();
    for (const StoredSlice& slice : stored.slices) slices.push_back(slice_json(slice));
    members.push_back({tensor, {{"dtype", name(stored.type)}, {"shape", stored.shape}, {"slices", std::move(slices)}}});
  }
  return all;
}

ordered_json files_json(const std::vector<CheckpointFile>& files) {
  ordered_json all = ordered_json::array();
  for (const CheckpointFile& file : files)
    all.push_back({{"name", file.name}, {"bytes", file.bytes}, {"header_xxh3", xxh3_text(file.header_xxh3)}});
  return all;
}

template <typename Value>
ordered_json map_json(const std::map<std::string, Value>& values) {
  ordered_json all = ordered_json::object();
  for (const auto& [key, value] : values) {
    if constexpr (std::is_same_v<Value, double>) {
      if (!std::isfinite(value)) continue;  // JSON cannot represent it
    }
    all[key] = value;
  }
  return all;
}

void add_slice(StoredTensor& tensor, const StoredSlice& slice) {
  for (const StoredSlice& there : tensor.slices) {
    if (there.slice == slice.slice) return;
  }
  tensor.slices.push_back(slice);
}

}  // namespace

void merge_part(CheckpointManifest& manifest, const CheckpointManifest& part, const std::string& path) {
  manifest.files.insert(manifest.files.end(), part.files.begin(), part.files.end());
  for (const auto& [tensor, stored] : part.tensors) {
    const auto [found, added] =
        manifest.tensors.try_emplace(tensor, StoredTensor{.type = stored.type, .shape = stored.shape});
    if (found->second.shape != stored.shape || found->second.type != stored.type)
      refuse_checkpoint_file(path, "tensor " + quote(printable(tensor)) + " differs in another rank's file",
                             std::string(name(stored.type)) + " " + shape_text(stored.shape),
                             std::string(name(found->second.type)) + " " + shape_text(found->second.shape));
    for (const StoredSlice& slice : stored.slices) add_slice(found->second, slice);
  }
}

void check_complete(const CheckpointManifest& manifest) {
  for (const auto& [tensor, stored] : manifest.tensors) {
    std::vector<std::vector<SliceRun>> runs;
    for (const StoredSlice& slice : stored.slices) runs.push_back(slice_runs(stored.shape, slice.slice));
    const std::string fault = cover_error(shape_elements(stored.shape), runs);
    RANKLAB_CHECK(fault.empty(), ErrorKind::kInternal, .where = "checkpoint",
                  .what = "the ranks' pieces of tensor " + quote(printable(tensor)) + " do not cover it exactly",
                  .got = fault, .want = "each of the elements of " + shape_text(stored.shape) + " once");
  }
}

std::string manifest_text(const CheckpointManifest& manifest) {
  ordered_json json = {{"format", "ranklab checkpoint"},
                       {"format_version", kCheckpointFormat},
                       {"step", manifest.step},
                       {"updates", manifest.updates},
                       {"consumed_samples", manifest.consumed_samples},
                       {"layout", map_json(manifest.layout)},
                       {"model", map_json(manifest.model)},
                       {"config", map_json(manifest.config)},
                       {"data", map_json(manifest.data)},
                       {"metrics", map_json(manifest.metrics)}};
  if (manifest.skipped_samples) json["skipped_samples"] = *manifest.skipped_samples;
  if (!manifest.loss_scale.empty()) json["loss_scale"] = map_json(manifest.loss_scale);
  if (!manifest.sentinels.empty()) json["sentinels"] = map_json(manifest.sentinels);
  if (!manifest.tokenizer_xxh3.empty()) json["tokenizer_xxh3"] = manifest.tokenizer_xxh3;
  json["files"] = files_json(manifest.files);
  json["tensors"] = tensors_json(manifest.tensors);
  json[kManifestHashKey] = std::string(kHashDigits, '0');
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::kInvalidArgument, {.where = "checkpoint",
                                              .what = "a name or a setting is not text",
                                              .got = error.what(),
                                              .want = "UTF-8",
                                              .fix = "rename it"});
  }
  text += "\n";
  RANKLAB_CHECK(text.size() <= kMostManifestBytes, ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "the manifest is longer than readers accept", .got = std::to_string(text.size()) + " bytes",
                .want = "at most " + std::to_string(kMostManifestBytes));
  text.replace(text.size() - kHashTail, kHashDigits, xxh3_text(manifest_hash(text)));
  return text;
}

}  // namespace ranklab
