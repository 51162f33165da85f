// A checkpoint folder that a command creates, with one checkpoint in it. It is locked while it is written, and removed
// if the command fails; after a signal, the empty folder remains. Thread rule: one thread.
#pragma once
#include <optional>
#include <string>

#include "core/base/files/unfinished_path.h"
#include "core/checkpoint/checkpoint_writer.h"
#include "core/checkpoint/run_lock.h"

namespace ranklab {

class NewRunFolder {
 public:
  // Throws kInvalidArgument if the folder is not empty, and kIo.
  NewRunFolder(const std::string& folder, int64_t step);
  ~NewRunFolder();
  NewRunFolder(const NewRunFolder&) = delete;
  NewRunFolder& operator=(const NewRunFolder&) = delete;

  CheckpointWriter& writer() { return writer_; }
  std::string publish(const CheckpointManifest& manifest);  // RETURNS: the checkpoint's folder

 private:
  std::string folder_;
  RunLock lock_;
  CheckpointWriter writer_;
  std::optional<UnfinishedPath> unfinished_lock_, unfinished_;
  bool published_ = false;
};

}  // namespace ranklab
