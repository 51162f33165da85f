// Tensors in a file that contains only data: the safetensors format (safetensors_header.h), which any framework can
// read, with additional checksums (integrity.h). A file appears whole or not at all, even if the power fails
// (core/base/files/atomic_file.h). The reader refuses anything that is not exactly the format, and checks each chunk
// before it returns its bytes. Cost: writing hashes the bytes once and makes no second copy of them
// (safetensors_stream.h holds one tensor); reading holds the header, and a whole chunk if less than a chunk is
// requested. Thread rule: const calls from any thread; a path has one writer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/files/atomic_file.h"
#include "core/checkpoint/integrity.h"
#include "core/checkpoint/read_only_file.h"
#include "core/checkpoint/safetensors_header.h"

namespace ranklab {

struct TensorToWrite {
  std::string name = {};
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape = {};
  std::span<const std::byte> bytes = {};  // row-major, little-endian
};

struct SafetensorsWriteOptions {
  std::map<std::string, std::string> metadata = {};
  bool checksums = true;
  uint64_t chunk_bytes = uint64_t{1} << 20;
  bool durable = true;
  FileCalls* calls = &system_file_calls();
};

struct WrittenSafetensors {
  uint64_t file_bytes = 0;
  uint64_t header_xxh3 = 0;  // identifies the whole file; 0 without checksums
};

// Lays data out like the format's own library: by type, from the end of TensorType on, so that each tensor is aligned
// to its elements, and by name within a type. Throws kInvalidArgument (a duplicate or malformed name, bytes that do not
// match the shape, metadata that begins with "ranklab."), kIo.
WrittenSafetensors write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                                     const SafetensorsWriteOptions& options = {});

struct DamagedChunk {
  std::string tensor = {};
  uint64_t begin = 0, end = 0;  // within the tensor
  uint64_t file_offset = 0;     // of begin
  uint64_t got = 0, want = 0;   // xxh3
};

class SafetensorsFile {
 public:
  // Reads and checks everything except the tensors' bytes. Throws kIo, kBadFile.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  uint64_t file_bytes() const { return file_.size_bytes(); }
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }              // sorted by name
  const TensorEntry* find(const std::string& name) const;                                  // null when there is none
  const TensorEntry& tensor(const std::string& name) const;                                // throws kBadFile
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }  // without the checksums
  const std::optional<Checksums>& checksums() const { return checksums_; }

  // Reads bytes of a tensor from `offset` on. Throws kBadFile when a chunk they lie in is damaged.
  void read(const TensorEntry& tensor, uint64_t offset, std::span<std::byte> out) const;
  std::vector<std::byte> read(const TensorEntry& tensor) const;
  // Reads every byte. Returns nothing for a file without checksums.
  std::vector<DamagedChunk> damaged_chunks() const;
  // Throws kBadFile naming the first damaged chunk and the number of damaged chunks.
  void verify() const;

 private:
  void read_header();
  void read_chunk(const TensorEntry& tensor, uint64_t index, std::span<std::byte> out) const;
  DamagedChunk hash_chunk(const TensorEntry& tensor, uint64_t index, std::span<const std::byte> bytes) const;
  [[noreturn]] void refuse(const DamagedChunk& chunk, const std::string& more) const;

  ReadOnlyFile file_;
  uint64_t data_begin_ = 0;
  SafetensorsHeader header_;
  std::optional<Checksums> checksums_;
};

}  // namespace ranklab
