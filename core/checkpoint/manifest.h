// What a checkpoint of a training run is: a folder of safetensors files, one a rank, and this list of what lies in
// them. It names every tensor of the model by its global name and shape, whatever the layout that wrote it, with the
// pieces that make it up (slices.h) and where they are; and what training needs to go on: step, cursor in the data, the
// settings. "weight/NAME" holds the master weights, or the parameters where there are none, "exp_avg/NAME",
// "exp_avg_sq/NAME" and "momentum/NAME" what the optimizer keeps, "buffer/NAME" what the model adjusts itself. Each
// file's header hash stands for the whole file (integrity.h), the manifest's own hash for the manifest.
//
// The reader trusts nothing: sizes are bounded before anything is allocated, nesting and duplicate keys are refused,
// file names are plain, slices are slices of their tensor. Whether they cover it, and the files, is what Checkpoint
// (checkpoint.h) checks. Cost: a few times the text, in memory. Thread rule: pure; plain data.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/slices.h"
#include "core/checkpoint/tensor_type.h"

namespace ranklab {

inline constexpr const char* kManifestName = "manifest.json";
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
  std::string key = {};  // the tensor in that file
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
  int64_t step = 0;                                // optimizer steps done; the first to run
  int64_t updates = 0;                             // of the optimizer (AdamW's bias correction)
  int64_t consumed_samples = 0;                    // where the data goes on
  std::map<std::string, std::string> config = {};  // every setting by key (config_fields.h); empty: imported
  std::map<std::string, std::string> model = {};   // those of them that shape the model
  std::map<std::string, int64_t> layout = {};      // world, tp, pp, dp, ep, etp, zero_stage, ...
  std::map<std::string, std::string> data = {};    // what the data is; empty: not known
  std::map<std::string, double> metrics = {};      // of the last step
  // scale, clean_steps and skipped_steps (core/optim/loss_scaler.h); empty: there was none
  std::map<std::string, double> loss_scale = {};
  std::vector<CheckpointFile> files = {};
  std::map<std::string, StoredTensor> tensors = {};
  bool operator==(const CheckpointManifest&) const = default;
};

// Adds the files and tensors of another part, as another rank wrote it. A piece that is there already (ranks that hold
// copies) is dropped. Throws kBadFile, naming `path`, when the parts disagree about a tensor.
void merge_part(CheckpointManifest& manifest, const CheckpointManifest& part, const std::string& path);

// Throws kInternal when the pieces of a tensor do not make it up: a checkpoint that could not be read again.
void check_complete(const CheckpointManifest& manifest);

std::string manifest_text(const CheckpointManifest& manifest);  // JSON with its own hash
// Throws kBadFile naming `path` and what is wrong.
CheckpointManifest parse_manifest(std::string_view text, const std::string& path);
// Throws kIo, kBadFile.
CheckpointManifest read_manifest(const std::string& path);

// Letters, digits, "_", "-" and ".", none in front: a name that stays in its folder.
bool is_plain_file_name(std::string_view name);

}  // namespace ranklab
