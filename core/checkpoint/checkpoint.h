// A checkpoint on disk (manifest.h), opened for reading: returns any slice of any tensor, assembled from pieces that
// another layout may have written. Opening checks everything except the tensors' bytes: the manifest, that every file
// is the one that the manifest names (size, hash of the header), the tokenizer's text, and that the pieces of each
// tensor cover it exactly once. Each chunk is checked against its hash when it is read. Cost: opening reads the
// headers; reading a slice reads each piece from its first to its last wanted element. Thread rule: const calls from
// any thread.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/manifest.h"
#include "core/checkpoint/safetensors.h"

namespace ranklab {

class Checkpoint {
 public:
  // Throws kIo, or kBadFile naming the file and what is wrong.
  explicit Checkpoint(std::string folder);

  const std::string& folder() const { return folder_; }
  const CheckpointManifest& manifest() const { return manifest_; }
  uint64_t file_bytes() const;  // total size of the files that hold tensors

  // The text of the checkpoint's tokenizer.json; "" when it has none.
  const std::string& tokenizer() const { return tokenizer_; }

  bool has(const std::string& name) const { return manifest_.tensors.contains(name); }
  const StoredTensor& tensor(const std::string& name) const;  // throws kBadFile with the nearest name

  // Fills `out` with the slice's elements, in the tensor's own type; padding is zero. Throws kBadFile when a chunk is
  // damaged, kInvalidArgument when `wanted` is not a slice of the tensor or `out` has the wrong size.
  void read(const std::string& name, const TensorSlice& wanted, std::span<std::byte> out) const;
  std::vector<std::byte> read(const std::string& name) const;  // the whole tensor

  // Reads every byte. Throws kBadFile naming the file, tensor and position of the first damaged chunk.
  void verify() const;
  const std::map<std::string, std::unique_ptr<SafetensorsFile>>& files() const { return files_; }

 private:
  void open(const CheckpointFile& file);
  void read_tokenizer();
  void check_pieces(const std::string& name, const StoredTensor& tensor) const;
  std::string manifest_path() const { return folder_ + "/" + kManifestName; }

  std::string folder_;
  CheckpointManifest manifest_;
  std::string tokenizer_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;
};

}  // namespace ranklab
