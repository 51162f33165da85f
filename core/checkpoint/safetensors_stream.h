// A safetensors file whose tensors are added one after the other, in any order, so that a model may be larger than
// memory: each tensor is hashed and written at its offset when it arrives, and the header, whose length is known from
// names and shapes, is written last. The file gets its name when it is complete (core/base/files/atomic_file.h), so a
// crash leaves the old file or none. Cost: each byte is hashed and written once; the header in memory. Thread rule: one
// thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/safetensors.h"

namespace ranklab {

class SafetensorsStream {
 public:
  // `tensors`: name, type and shape of each; their offsets are computed here as in write_safetensors(). Throws
  // kInvalidArgument in the same cases as write_safetensors(), and kIo.
  SafetensorsStream(const std::string& path, std::vector<TensorEntry> tensors,
                    const SafetensorsWriteOptions& options = {});

  // Adds a whole tensor, row-major and little-endian; each exactly once. Throws kInvalidArgument, kIo.
  void add(const std::string& name, std::span<const std::byte> bytes);
  // Throws kInvalidArgument when a tensor was not added, kIo.
  WrittenSafetensors commit();

 private:
  void lay_out();
  void begin_checksums();
  std::string header(uint64_t& hash) const;
  void write_at(uint64_t offset, std::span<const char> bytes);

  const SafetensorsWriteOptions options_;
  std::vector<TensorEntry> tensors_;         // in file order
  std::map<std::string, size_t> positions_;  // index in tensors_
  std::set<std::string> missing_;
  Checksums checksums_;
  uint64_t data_begin_ = 0;
  uint64_t offset_ = 0;  // file offset of the next write
  std::unique_ptr<AtomicFile> file_;
};

}  // namespace ranklab
