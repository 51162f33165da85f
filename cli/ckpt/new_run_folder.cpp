#include "cli/ckpt/new_run_folder.h"

#include <unistd.h>

#include <filesystem>

#include "core/checkpoint/tensor_files.h"

namespace ranklab {
namespace {

const std::string& made(const std::string& folder) {
  make_empty_folder(folder);
  return folder;
}

}  // namespace

NewRunFolder::NewRunFolder(const std::string& folder, int64_t step)
    : folder_(made(folder)), lock_(folder_), writer_(folder_, step, std::to_string(::getpid())) {
  unfinished_lock_.emplace(folder_ + "/lock");
  unfinished_.emplace(writer_.temporary_folder());
  writer_.begin();
}

NewRunFolder::~NewRunFolder() {
  if (published_) return;
  writer_.discard();
  std::error_code ignored;
  std::filesystem::remove(folder_ + "/lock", ignored);
  std::filesystem::remove(folder_, ignored);
}

std::string NewRunFolder::publish(const CheckpointManifest& manifest) {
  writer_.publish(manifest);
  unfinished_lock_.reset();
  published_ = true;
  return writer_.published_folder();
}

}  // namespace ranklab
