#include "core/checkpoint/checkpoint_writer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/checkpoint/run_folder.h"
#include "core/checkpoint/safetensors.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

std::string rank_name(int rank, const char* ending) { return strprintf("rank_%05d.%s", rank, ending); }

// The shape in the file: that of the rank's local tensor, if the piece is all of it.
std::vector<int64_t> piece_shape(const PieceToWrite& piece) {
  const SlicePartition& partition = piece.slice.partition;
  if (piece.slice.begin != 0 || piece.slice.end != local_elements(piece.shape, partition))
    return {piece.slice.elements()};
  std::vector<int64_t> shape = piece.shape;
  if (partition.dim < 0) return shape;
  int64_t length = 0;
  for (const auto& [begin, end] : partition.ranges) length += end - begin;
  shape[static_cast<size_t>(partition.dim)] = length;
  return shape;
}

ErrorText file_words() {
  return {.where = "checkpoint",
          .what = "cannot write the file",
          .fix = "check the folder, its permissions and the free space"};
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string run_folder, int64_t step, const std::string& token, FileCalls& calls)
    : run_folder_(std::move(run_folder)),
      step_(step),
      temporary_(run_folder_ + "/.saving-" + step_folder_name(step) + "-" + token),
      calls_(calls) {}

std::string CheckpointWriter::published_folder() const { return run_folder_ + "/" + step_folder_name(step_); }
std::string CheckpointWriter::part_path(int rank) const { return temporary_ + "/" + rank_name(rank, "json"); }

void CheckpointWriter::refuse(const std::string& what, const std::string& path) const {
  throw Error(ErrorKind::kIo, {.where = "checkpoint",
                               .what = what,
                               .got = quote(path) + ": " + std::strerror(errno),
                               .fix = "check the folder, its permissions and the free space"});
}

void CheckpointWriter::begin() {
  if (calls_.make_folder(temporary_.c_str(), 0777) != 0 && errno != EEXIST)
    refuse("cannot create a folder for the checkpoint", temporary_);
}

CheckpointManifest CheckpointWriter::write_file(int rank, std::span<const PieceToWrite> pieces) {
  CheckpointManifest part{.step = step_};
  const std::string name = rank_name(rank, "safetensors");
  std::vector<TensorToWrite> tensors;
  std::set<std::string> keys;
  for (const PieceToWrite& piece : pieces) {
    const std::string fault = fault_of_slice(piece.shape, piece.slice);
    RANKLAB_CHECK(fault.empty(), ErrorKind::kInternal, .where = "checkpoint",
                  .what = "a piece of " + quote(piece.tensor) + " is not a slice of it", .got = fault);
    std::string key = piece.tensor;
    if (!keys.insert(key).second) keys.insert(key += "@" + std::to_string(piece.slice.begin));
    tensors.push_back({.name = key, .type = piece.type, .shape = piece_shape(piece), .bytes = piece.bytes});
    StoredTensor& stored =
        part.tensors.try_emplace(piece.tensor, StoredTensor{.type = piece.type, .shape = piece.shape}).first->second;
    stored.slices.push_back({.file = name, .key = key, .slice = piece.slice});
  }
  const auto write = [&] { return write_safetensors(temporary_ + "/" + name, tensors, {.calls = &calls_}); };
  WrittenSafetensors written;
  try {
    written = write();
  } catch (const Error&) {
    // A process that failed has removed the folder, empty since begin() (leave_no_empty_folder()). Its error is the one
    // to report, not that there is no folder.
    if (is_folder(temporary_)) throw;
    begin();
    written = write();
  }
  part.files.push_back({.name = name, .bytes = written.file_bytes, .header_xxh3 = written.header_xxh3});
  return part;
}

void CheckpointWriter::leave_part(int rank, const CheckpointManifest& part) {
  write_file_atomically(part_path(rank), manifest_text(part),
                        {.where = "checkpoint",
                         .what = "cannot write the list of a rank's tensors",
                         .fix = "check the folder, its permissions and the free space"},
                        {.durable = true, .calls = &calls_});
}

std::optional<CheckpointManifest> CheckpointWriter::find_part(int rank) const {
  std::error_code ignored;
  if (!fs::exists(part_path(rank), ignored)) return std::nullopt;
  return read_manifest(part_path(rank));
}

void CheckpointWriter::sync_folder(const std::string& path) {
  int folder = -1;
  do {
    folder = calls_.open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  } while (folder < 0 && errno == EINTR);
  if (folder < 0) refuse("cannot open the folder of checkpoints", path);
  int synced = 0;
  do {
    synced = calls_.sync(folder);
  } while (synced != 0 && errno == EINTR);
  const int reason = errno;
  calls_.close(folder);
  errno = reason;
  if (synced != 0) refuse("cannot sync the folder of checkpoints", path);
}

// An older checkpoint of this step (damaged, or from a run that was rolled back) is replaced by the new one.
void CheckpointWriter::give_name() {
  const std::string target = published_folder();
  struct stat status {};
  if (::lstat(target.c_str(), &status) != 0) {
    if (calls_.rename(temporary_.c_str(), target.c_str()) != 0) refuse("cannot name the checkpoint", target);
    return;
  }
  if (calls_.exchange(temporary_.c_str(), target.c_str()) == 0) return;
  // Some file systems do not support this.
  if (errno != EINVAL && errno != ENOSYS) refuse("cannot replace the checkpoint", target);
  remove_checkpoint(run_folder_, step_folder_name(step_), calls_);
  if (calls_.rename(temporary_.c_str(), target.c_str()) != 0) refuse("cannot name the checkpoint", target);
}

void CheckpointWriter::write_tokenizer(const std::string& json, CheckpointManifest& manifest) {
  manifest.tokenizer_xxh3 = json.empty() ? "" : xxh3_text(xxh3(std::as_bytes(std::span(json))));
  if (!json.empty())
    write_file_atomically(temporary_ + "/" + kTokenizerName, json, file_words(), {.durable = true, .calls = &calls_});
}

void CheckpointWriter::publish(const CheckpointManifest& manifest) {
  check_complete(manifest);
  const ErrorText words = file_words();
  write_file_atomically(temporary_ + "/" + kManifestName, manifest_text(manifest), words,
                        {.durable = true, .calls = &calls_});
  for (size_t i = 0; i < manifest.files.size(); ++i) {
    std::string part = temporary_ + "/" + manifest.files[i].name;
    part.replace(part.size() - std::strlen("safetensors"), std::string::npos, "json");
    if (std::error_code ignored; fs::exists(part, ignored)) calls_.unlink(part.c_str());
  }
  give_name();
  sync_folder(run_folder_);
  discard();  // after an exchange, this removes the older checkpoint
  write_file_atomically(run_folder_ + "/latest", step_folder_name(step_) + "\n", words,
                        {.durable = true, .calls = &calls_});
}

void CheckpointWriter::leave_no_empty_folder() noexcept { calls_.remove_folder(temporary_.c_str()); }

void CheckpointWriter::discard() noexcept {
  try {
    if (std::error_code ignored; fs::exists(temporary_, ignored))
      remove_checkpoint(run_folder_, fs::path(temporary_).filename().string(), calls_);
  } catch (const std::exception&) {  // the next run removes it
  }
}

}  // namespace ranklab
