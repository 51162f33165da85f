// A training checkpoint is a folder of safetensors files, one per rank, and this manifest of their contents. It names
// every tensor of the model by its global name and shape, whatever layout wrote it, with the pieces of which it
// consists (slices.h) and where they are. It also holds what is needed to resume training: step, position in the data,
// settings. "weight/NAME" holds the master weights, or the parameters if there are no master weights; "exp_avg/NAME",
// "exp_avg_sq/NAME" and "momentum/NAME" hold the optimizer state; "buffer/NAME" holds what the model itself adjusts.
// Each file's header hash identifies the whole file (integrity.h), the manifest's own hash protects the manifest.
//
// The reader trusts nothing: sizes are bounded before anything is allocated, nesting and duplicate keys are refused,
// file names are plain, slices must be slices of their tensor. Checkpoint (checkpoint.h) checks that they cover the
// tensor and that the files match. Cost: a few times the text, in memory. Thread rule: pure; plain data.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/slices.h"
#include "core/checkpoint/tensor_type.h"

namespace ranklab {

inline constexpr const char* kManifestName = "manifest.json";
// As in Hugging Face's folders: the tokenizer of the model's vocabulary.
inline constexpr const char* kTokenizerName = "tokenizer.json";
inline constexpr uint64_t kMostTokenizerBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMostManifestBytes = uint64_t{64} << 20;
inline constexpr int64_t kCheckpointFormat = 2;

struct CheckpointFile {
  std::string name = {};  // inside the folder
  uint64_t bytes = 0;
  uint64_t header_xxh3 = 0;
  bool operator==(const CheckpointFile&) const = default;
};

struct StoredSlice {
  std::string file = {};
  std::string key = {};  // name of the tensor in that file
  TensorSlice slice = {};
  bool operator==(const StoredSlice&) const = default;
};

struct StoredTensor {
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape = {};  // global
  std::vector<StoredSlice> slices = {};
  bool operator==(const StoredTensor&) const = default;
};

struct CheckpointManifest {
  int64_t step = 0;              // optimizer steps done, which is also the index of the next step
  int64_t updates = 0;           // number of updates of the optimizer (for AdamW's bias correction)
  int64_t consumed_samples = 0;  // the position in the data at which reading resumes
  // samples of steps without an update (fp16 overflows); unset: not counted
  std::optional<int64_t> skipped_samples = {};
  std::map<std::string, std::string> config = {};  // every setting by key (settings/fields.h); empty: imported
  std::map<std::string, std::string> model = {};   // the subset of `config` that determines the model
  std::map<std::string, int64_t> layout = {};      // world, tp, pp, dp, ep, etp, zero_stage, ...
  std::map<std::string, std::string> data = {};    // identifies the data; empty: unknown
  std::map<std::string, double> metrics = {};      // of the last step
  // scale, clean_steps and skipped_steps (core/optim/loss_scaler.h); empty: no loss scale
  std::map<std::string, double> loss_scale = {};
  // Means, counts and last values from which the sentinels compute later measurements
  // (core/runtime/sentinels/family.h).
  std::map<std::string, double> sentinels = {};
  std::string tokenizer_xxh3 = {};  // hash of the file kTokenizerName next to it, as xxh3_text(); "": there is none
  std::vector<CheckpointFile> files = {};
  std::map<std::string, StoredTensor> tensors = {};
  bool operator==(const CheckpointManifest&) const = default;
};

// Adds the files and tensors of a part that another rank wrote. A piece that is already present (from ranks that hold
// replicas) is dropped. Throws kBadFile, naming `path`, when the parts disagree about a tensor.
void merge_part(CheckpointManifest& manifest, const CheckpointManifest& part, const std::string& path);

// Throws kInternal when the pieces of a tensor do not cover it: such a checkpoint could not be read.
void check_complete(const CheckpointManifest& manifest);

std::string manifest_text(const CheckpointManifest& manifest);  // JSON with its own hash
// Throws kBadFile naming `path` and what is wrong.
CheckpointManifest parse_manifest(std::string_view text, const std::string& path);
// Throws kIo, kBadFile.
CheckpointManifest read_manifest(const std::string& path);

// Letters, digits, "_", "-" and ".", but no leading ".": a name that cannot leave its folder.
bool is_plain_file_name(std::string_view name);

}  // namespace ranklab
