// Writes a checkpoint to disk: a folder under a temporary name, into which every rank writes a file of its own, and
// which is renamed once everything is there and synced. So a reader finds only complete checkpoints, whenever the run
// is killed or the power fails. Ranks in other processes leave a part (the manifest of their own file) where rank 0's
// process finds it; that process merges all parts into the manifest and publishes. An existing folder of the same step
// is exchanged with the new one in one call. Cost: the bytes, and a few waits for the disk. Thread rule: an object
// belongs to one thread; any number of them, in any processes, may write different ranks' files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/files/file_calls.h"
#include "core/checkpoint/manifest.h"

namespace ranklab {

struct PieceToWrite {
  std::string tensor = {};  // "weight/NAME"
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape = {};  // global
  TensorSlice slice = {};
  std::span<const std::byte> bytes = {};  // the slice's bytes
};

class CheckpointWriter {
 public:
  // `token` distinguishes this run's temporary folders from those of other runs: letters and digits, the same in all
  // processes of the run.
  CheckpointWriter(std::string run_folder, int64_t step, const std::string& token,
                   FileCalls& calls = system_file_calls());

  const std::string& temporary_folder() const { return temporary_; }
  // Creates the temporary folder unless another process has. All methods here throw kIo.
  void begin();
  // Writes rank_NNNNN.safetensors, in a new folder if another process has removed that of begin(). RETURNS: its part of
  // the manifest.
  CheckpointManifest write_file(int rank, std::span<const PieceToWrite> pieces);
  void leave_part(int rank, const CheckpointManifest& part);
  // Returns nothing while that rank has not written its part yet. Throws kBadFile.
  std::optional<CheckpointManifest> find_part(int rank) const;

  // Writes the tokenizer.json that belongs to the weights (for "" none) and enters its hash in `manifest`, which is
  // then passed to publish().
  void write_tokenizer(const std::string& json, CheckpointManifest& manifest);
  // Writes the manifest, renames the folder, and writes the hint "latest". All parts must have been merged into
  // `manifest`.
  void publish(const CheckpointManifest& manifest);
  // Removes what was written, as far as possible. Must not follow publish().
  void discard() noexcept;
  // Removes the temporary folder if it is empty. For a process that could not write its part, while other processes may
  // have theirs there.
  void leave_no_empty_folder() noexcept;
  std::string published_folder() const;

 private:
  std::string part_path(int rank) const;
  void sync_folder(const std::string& path);
  void give_name();
  [[noreturn]] void refuse(const std::string& what, const std::string& path) const;

  std::string run_folder_;
  int64_t step_;
  std::string temporary_;
  FileCalls& calls_;
};

}  // namespace ranklab
