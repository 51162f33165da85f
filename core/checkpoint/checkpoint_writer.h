// A checkpoint on its way to the disk: a folder under a temporary name, into which every rank writes a file of its own,
// and which gets its name when all is there and synced, so that a reader finds whole checkpoints only, whenever the run
// is killed or the power fails. Ranks in other processes leave a part, the manifest of their file alone, where the
// process of rank 0 finds it; it makes the manifest of all parts and publishes. A folder of the same step that is
// there already is exchanged with the new one in one call. Cost: the bytes, and a few waits for the disk.
// Thread rule: an object is one thread's; any number of them, in any processes, may write different ranks' files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/file_calls.h"
#include "core/checkpoint/manifest.h"

namespace ranklab {

struct PieceToWrite {
  std::string tensor = {};  // "weight/NAME"
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape = {};  // global
  TensorSlice slice = {};
  std::span<const std::byte> bytes = {};  // of the slice
};

class CheckpointWriter {
 public:
  // `token` tells this run's temporary folders from others': letters and digits, the same in all its processes.
  CheckpointWriter(std::string run_folder, int64_t step, const std::string& token,
                   FileCalls& calls = system_file_calls());

  const std::string& temporary_folder() const { return temporary_; }
  // Creates the temporary folder unless another process has. All of these throw kIo.
  void begin();
  // Writes rank_NNNNN.safetensors. RETURNS: its part of the manifest.
  CheckpointManifest write_file(int rank, std::span<const PieceToWrite> pieces);
  void leave_part(int rank, const CheckpointManifest& part);
  // Nothing when that rank has not left it yet. Throws kBadFile.
  std::optional<CheckpointManifest> find_part(int rank) const;

  // Writes the manifest, gives the folder its name, and the hint "latest". `manifest` has all parts merged into it.
  void publish(const CheckpointManifest& manifest);
  // Removes what was written, as far as that goes. Not after publish().
  void discard() noexcept;
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
