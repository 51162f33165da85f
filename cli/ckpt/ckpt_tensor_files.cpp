#include "cli/ckpt/ckpt_tensor_files.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/ckpt/ckpt_text.h"
#include "cli/common/json_output.h"
#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/config.h"
#include "core/checkpoint/hf/folder.h"
#include "core/checkpoint/tensor_diff.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

struct Sums {
  uint64_t bytes = 0;
  size_t tensors = 0, with_checksums = 0;
};

Sums sums_of(const TensorFiles& set) {
  Sums sums;
  for (const auto& file : set.files) {
    sums.bytes += file->file_bytes();
    sums.tensors += file->tensors().size();
    if (file->checksums()) ++sums.with_checksums;
  }
  return sums;
}

std::string size_text(const TensorFiles& set, const Sums& sums) {
  std::string text = counted(static_cast<int64_t>(sums.tensors), "tensor");
  if (set.is_folder) text += " in " + counted(static_cast<int64_t>(set.files.size()), "file");
  return text + ", " + both_sizes(sums.bytes);
}

std::string checksums_text(const TensorFiles& set, const Sums& sums) {
  if (sums.with_checksums == set.files.size()) return "every checksum holds";
  const std::string whose = sums.with_checksums == 0
                                ? (set.is_folder ? "they have" : "it has")
                                : std::to_string(set.files.size() - sums.with_checksums) + " of the files have";
  return whose + " no checksums, so a flipped bit in a tensor would not be detected";
}

void check_bytes(const SafetensorsFile& file, bool json) {
  const std::vector<DamagedChunk> damaged = file.damaged_chunks();
  for (const DamagedChunk& chunk : damaged) {
    if (json) break;  // stdout holds the error object
    std::printf("damaged: tensor %s, bytes %llu to %llu, file offset %llu\n", quote(chunk.tensor).c_str(),
                static_cast<LongUnsigned>(chunk.begin), static_cast<LongUnsigned>(chunk.end),
                static_cast<LongUnsigned>(chunk.file_offset));
  }
  if (!damaged.empty()) file.verify();  // throws, naming the first
}

TensorPlaces places_of(const TensorFiles& set) {
  TensorPlaces places;
  for (const auto& file : set.files) places.merge(tensor_places(*file));
  return places;
}

ordered_json json_of(const TensorDifferences& diff, const std::set<std::string>& remarks) {
  ordered_json tensors = ordered_json::array();
  for (const TensorDifference& d : diff.tensors) tensors.push_back(difference_json(d));
  return {{"same", diff.tensors.empty()},
          {"same_tensors", diff.same_tensors},
          {"different", tensors},
          {"metadata", remarks}};
}

}  // namespace

TensorFiles open_tensor_files(const std::string& path) {
  TensorFiles set{.path = path, .is_folder = is_folder(path), .files = {}, .remarks = {}};
  if (!set.is_folder) {
    set.files.push_back(std::make_unique<SafetensorsFile>(path));
    set.remarks = set.files[0]->metadata();
    return set;
  }
  HfFolder folder(path);  // the index, if there is one, names the tensors that the files have
  const HfJson config = parse_hf_json(folder.config_text(), folder.config_path());
  for (const auto& [key, value] : config.items()) set.remarks[key] = value.dump();
  set.files = std::move(folder).take_files();
  return set;
}

int verify_tensor_files(const std::string& path, bool json) {
  const TensorFiles set = open_tensor_files(path);
  for (const auto& file : set.files) check_bytes(*file, json);
  const Sums sums = sums_of(set);
  if (json) {
    ordered_json data = {{set.is_folder ? "folder" : "file", path},
                         {"bytes", sums.bytes},
                         {"tensors", sums.tensors},
                         {"checksums", sums.with_checksums == set.files.size()}};
    if (set.is_folder) data["files"] = set.files.size();
    std::printf("%s", json_result(data).c_str());
    return 0;
  }
  std::printf("%s: sound, %s; %s\n", path.c_str(), size_text(set, sums).c_str(), checksums_text(set, sums).c_str());
  return 0;
}

int diff_tensor_files(const std::string& a, const std::string& b, bool json) {
  const TensorFiles left = open_tensor_files(a), right = open_tensor_files(b);
  const TensorDifferences diff = diff_tensors(places_of(left), places_of(right));
  // A file's metadata and a folder's config.json say different things.
  std::set<std::string> remarks;
  if (left.is_folder == right.is_folder) remarks = keys_that_differ(left.remarks, right.remarks);
  const int code = diff.tensors.empty() ? 0 : exit_code(ErrorKind::kCheckFailed);
  if (json) {
    std::printf("%s", json_result(json_of(diff, remarks)).c_str());
    return code;
  }
  std::printf("a: %s\nb: %s\n", a.c_str(), b.c_str());
  for (const TensorDifference& d : diff.tensors) std::printf("%s: %s\n", d.name.c_str(), difference_text(d).c_str());
  std::vector<std::string> keys;
  for (const std::string& key : remarks) keys.push_back(metadata_text(key));
  if (!keys.empty())
    std::printf("%s that differs (ignored): %s\n", left.is_folder ? "config.json" : "metadata",
                join(keys, ", ").c_str());
  if (diff.tensors.empty()) {
    std::printf("the same: %llu tensors, bit for bit\n", static_cast<LongUnsigned>(diff.same_tensors));
  } else {
    std::printf("tensors that differ: %zu, the same: %llu\n", diff.tensors.size(),
                static_cast<LongUnsigned>(diff.same_tensors));
  }
  return code;
}

}  // namespace ranklab
