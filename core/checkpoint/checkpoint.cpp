#include "core/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// Copies the elements of `stored` that `wanted` also contains to their positions in `out`.
void copy_piece(const SafetensorsFile& file, const TensorEntry& entry, std::span<const SliceOverlap> overlaps,
                std::span<std::byte> out) {
  if (overlaps.empty()) return;
  const auto size = static_cast<size_t>(size_bytes(entry.type));
  int64_t first = overlaps[0].from_at, last = 0;
  for (const SliceOverlap& overlap : overlaps) {
    first = std::min(first, overlap.from_at);
    last = std::max(last, overlap.from_at + overlap.length);
  }
  const auto at = [size](int64_t element) { return static_cast<size_t>(element) * size; };
  if (overlaps.size() == 1)
    return file.read(entry, at(first), out.subspan(at(overlaps[0].to_at), at(overlaps[0].length)));
  std::vector<std::byte> piece(at(last - first));
  file.read(entry, at(first), piece);
  for (const SliceOverlap& overlap : overlaps)
    std::memcpy(out.data() + at(overlap.to_at), piece.data() + at(overlap.from_at - first), at(overlap.length));
}

// A checkpoint that lacks a file is damaged, wherever its folder came from; the path that the user gave is right.
void require_file(const std::string& path, const char* who) {
  std::error_code ignored;
  // If the file exists but cannot be accessed, opening it reports the system's reason.
  if (std::filesystem::symlink_status(path, ignored).type() != std::filesystem::file_type::not_found) return;
  refuse_checkpoint_file(path, "the checkpoint is incomplete", "no such file", who);
}

}  // namespace

Checkpoint::Checkpoint(std::string folder) : folder_(std::move(folder)) {
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  if (is_folder(folder_)) require_file(manifest_path(), "the manifest, which names all other files");
  manifest_ = read_manifest(manifest_path());
  if (!manifest_.tokenizer_xxh3.empty()) read_tokenizer();
  for (const CheckpointFile& file : manifest_.files) open(file);
  for (const auto& [name, tensor] : manifest_.tensors) check_pieces(name, tensor);
}

void Checkpoint::read_tokenizer() {
  const std::string path = folder_ + "/" + kTokenizerName;
  require_file(path, "the tokenizer whose hash manifest.json names");
  tokenizer_ = read_whole_file(path, kMostTokenizerBytes,
                               {.where = "checkpoint",
                                .fix = "use another copy of the folder, or an earlier checkpoint",
                                .follow_links = false});
  if (const std::string got = xxh3_text(xxh3(std::as_bytes(std::span(tokenizer_)))); got != manifest_.tokenizer_xxh3)
    refuse_checkpoint_file(path, "this is not the file that its manifest names", "xxh3 " + got,
                           "xxh3 " + manifest_.tokenizer_xxh3);
}

void Checkpoint::open(const CheckpointFile& file) {
  const std::string path = folder_ + "/" + file.name;
  require_file(path, "every file that manifest.json names");
  auto opened = std::make_unique<SafetensorsFile>(path);
  if (opened->file_bytes() != file.bytes)
    refuse_checkpoint_file(path, "the size of the file differs from its manifest",
                           std::to_string(opened->file_bytes()) + " bytes", std::to_string(file.bytes) + " bytes");
  if (!opened->checksums()) refuse_checkpoint_file(path, "the file has no checksums", "none", "those ranklab wrote");
  if (opened->checksums()->header != file.header_xxh3)
    refuse_checkpoint_file(path, "this is not the file that its manifest names",
                           "xxh3 " + xxh3_text(opened->checksums()->header), "xxh3 " + xxh3_text(file.header_xxh3));
  files_[file.name] = std::move(opened);
}

void Checkpoint::check_pieces(const std::string& name, const StoredTensor& tensor) const {
  std::vector<std::vector<SliceRun>> runs;
  for (const StoredSlice& stored : tensor.slices) {
    const SafetensorsFile& file = *files_.at(stored.file);
    const TensorEntry& entry = file.tensor(stored.key);
    const auto elements = static_cast<uint64_t>(stored.slice.elements());
    if (entry.type != tensor.type || entry.elements() != elements)
      refuse_checkpoint_file(file.path(), "tensor " + quote(stored.key) + " is not what the manifest says",
                             std::string(ranklab::name(entry.type)) + " " + shape_text(entry.shape),
                             std::to_string(elements) + " elements of " + std::string(ranklab::name(tensor.type)));
    runs.push_back(slice_runs(tensor.shape, stored.slice));
  }
  const std::string fault = cover_error(shape_elements(tensor.shape), runs);
  if (!fault.empty())
    refuse_checkpoint_file(manifest_path(), "the pieces of tensor " + quote(name) + " do not cover it exactly", fault,
                           "each of the elements of " + shape_text(tensor.shape) + " once");
}

uint64_t Checkpoint::file_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, file] : files_) bytes += file->file_bytes();
  return bytes;
}

const StoredTensor& Checkpoint::tensor(const std::string& name) const {
  const auto found = manifest_.tensors.find(name);
  if (found != manifest_.tensors.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [other, tensor] : manifest_.tensors) names.push_back(other);
  const std::string nearest = nearest_name(name, names);
  refuse_checkpoint_file(manifest_path(), "there is no tensor " + quote(name), std::to_string(names.size()) + " others",
                         nearest.empty() ? "that one" : "perhaps " + quote(nearest));
}

void Checkpoint::read(const std::string& name, const TensorSlice& wanted, std::span<std::byte> out) const {
  const StoredTensor& stored = tensor(name);
  const std::string fault = fault_of_slice(stored.shape, wanted);
  RANKLAB_CHECK(fault.empty(), ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "no slice of tensor " + quote(name), .got = fault,
                .want = "a slice of " + shape_text(stored.shape));
  const uint64_t bytes = static_cast<uint64_t>(wanted.elements()) * size_bytes(stored.type);
  RANKLAB_CHECK(bytes == out.size(), ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "no room for the slice of tensor " + quote(name), .got = std::to_string(out.size()) + " bytes",
                .want = std::to_string(bytes) + " bytes of " + std::string(ranklab::name(stored.type)));
  std::ranges::fill(out, std::byte{0});
  const std::vector<SliceRun> runs = slice_runs(stored.shape, wanted);
  for (const StoredSlice& piece : stored.slices) {
    const SafetensorsFile& file = *files_.at(piece.file);
    copy_piece(file, file.tensor(piece.key), meet(slice_runs(stored.shape, piece.slice), runs), out);
  }
}

std::vector<std::byte> Checkpoint::read(const std::string& name) const {
  const StoredTensor& stored = tensor(name);
  const TensorSlice all = whole_slice(stored.shape);
  std::vector<std::byte> bytes(static_cast<size_t>(all.elements()) * size_bytes(stored.type));
  read(name, all, bytes);
  return bytes;
}

void Checkpoint::verify() const {
  for (const auto& [name, file] : files_) file->verify();
}

}  // namespace ranklab
