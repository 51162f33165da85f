// A corpus as token files that are read in parts: a training run starts at once and shares the page cache with all
// other runs, however large the corpus is. One shard is a 64-byte header (magic, version, token width, token count,
// vocabulary size, checksums, little-endian), the tokens, and one XXH3 per 64 KiB of them; index.json lists the shards
// of a folder in order and the files they were made from, and ends with its own XXH3. Every file gets its name only
// when it is complete (temporary name, fsync, rename), so that an interrupted preparation is continued. Cost: opening
// reads sizes, headers and checksums only; the first read of a 64 KiB chunk checks all of it, each later read is a
// pread(); verify_shards() reads everything. Folders of version 1 (one FNV-1a per shard) are still readable; there a
// shard is checked as a whole when it is first read. Thread rule: a reader is shared; one writer per folder.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/token_input.h"
#include "core/data/token_sequence.h"

namespace ranklab {

enum class TokenWidth : uint32_t { kUint16 = 2, kUint32 = 4 };  // bytes

struct ShardInfo {
  std::string name = {};  // inside the folder
  int64_t tokens = 0;
  uint64_t hash = 0;  // hash of its checksum table; in version 1, of its tokens
};

struct ShardInput {
  std::string path = {};
  uint64_t bytes = 0;
  uint64_t hash = 0;
  int64_t tokens = 0;
  bool operator==(const ShardInput&) const = default;
};

struct ShardIndex {
  uint32_t version = 2;
  TokenWidth width = TokenWidth::kUint16;
  int64_t vocab_size =
      256;  // the largest token plus one, but at least 256 for bytes; if there is a tokenizer, its vocabulary size
  int64_t shard_tokens = 0;  // of every shard except the last
  bool complete = false;
  InputFormat format = {};
  std::vector<ShardInput> inputs = {};
  std::vector<ShardInfo> shards = {};
  int64_t tokens() const;
};

struct PrepareOptions {
  TokenWidth width = TokenWidth::kUint16;
  int64_t shard_tokens = int64_t{1} << 26;
  InputFormat format = {};
  // For text (null: the tokens are bytes), or the tokenizer that produced the given tokens. Its file is stored with the
  // shards.
  Tokenizer* tokenizer = nullptr;
  bool force = false;  // also overwrite files that have names of shards but are not shards
  std::function<void(int64_t done, int64_t total)> progress = {};  // numbers of tokens; called after each shard
};

struct PrepareResult {
  ShardIndex index;
  size_t resumed_shards = 0;  // shards that an earlier run had completed
};

// Writes the tokens of the inputs, one input after another. Throws kIo, kBadFile (an input is not in its format), and
// kInvalidArgument when the folder holds shards of other inputs or settings, or a token does not fit the width.
PrepareResult prepare_shards(const std::vector<std::string>& files, const std::string& folder,
                             const PrepareOptions& options = {});

// Throws kBadFile naming the file when the index is damaged.
ShardIndex read_shard_index(const std::string& folder);
// The tokenizer that produced the folder's tokens; nothing if they are bytes or come from elsewhere. Throws kBadFile
// when its file is missing or is not the right one.
std::optional<Tokenizer> open_shard_tokenizer(const std::string& folder, const ShardIndex& index);
// Reads every token and checks all checksums (of index, tokenizer, headers and tokens). Throws kBadFile naming the
// file.
void verify_shards(const std::string& folder);
// Throws kBadFile (header, size or index do not match) or kIo.
std::shared_ptr<const TokenSequence> open_shards(const std::string& folder);

}  // namespace ranklab
