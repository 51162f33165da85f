// Reads one shard: its header and checksum table are compared with the index when it is opened, and its tokens are
// checked chunk by chunk when they are first read. The file is read and not mapped, so that truncating it during a run
// causes an error instead of SIGBUS. Cost: the first read of a chunk reads all of it and computes its XXH3 (about 15 us
// for 64 KiB in the page cache: 100 million tokens in random samples of 2,048 take 0.30 s the first time and 0.15 s
// every later time); later reads are one pread() each. A shard of version 1 is one chunk. Few descriptors stay open,
// however many shards there are. Thread rule: const calls from any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/files/input_file.h"
#include "core/data/token_shard.h"

namespace ranklab::shards {

// Keeps the most recently opened files open.
class OpenFiles {
 public:
  // Opens the file if needed. REQUIRES: each path has one index.
  std::shared_ptr<const InputFile> get(size_t index, const std::string& path);

 private:
  struct Entry {
    size_t index = 0;
    std::shared_ptr<const InputFile> file;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;  // in the order in which they were opened; the first is closed first
};

class ShardFile {
 public:
  // Opens shard `number` of the index. Throws kBadFile when size, header or checksum table do not match the index.
  ShardFile(const std::string& folder, const ShardIndex& index, size_t number, std::shared_ptr<OpenFiles> files);

  // Payload bytes from `offset` on, verified. Throws kBadFile naming the file. REQUIRES: they exist.
  void read(uint64_t offset, std::span<char> out) const;
  void verify() const;  // every chunk, including those that were read before
  const std::string& path() const { return path_; }

 private:
  void read_table(uint64_t want);
  void verify_chunk(uint64_t chunk) const;
  void read_file(uint64_t offset, std::span<char> out) const;

  std::string path_;
  size_t number_;
  std::shared_ptr<OpenFiles> files_;
  uint32_t version_;
  uint64_t payload_bytes_;
  uint64_t chunk_bytes_;
  std::vector<uint64_t> hashes_;                  // one per chunk
  std::unique_ptr<std::atomic<bool>[]> checked_;  // one per chunk
};

}  // namespace ranklab::shards
