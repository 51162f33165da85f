#include "core/data/shard_file.h"

#include <algorithm>

#include "core/base/checksum.h"
#include "core/base/text.h"
#include "core/data/shard_format.h"

namespace ranklab::shards {
namespace {

std::string hash_text(uint64_t hash) { return "hash " + xxh3_text(hash); }

void check_header(const std::string& path, const Header& header, const ShardIndex& index, const ShardInfo& info) {
  if (header.magic != kMagic) refuse_file(path, "this is not a token shard", "a different first line", "RLTOKEN");
  const auto same = [&path](const char* what, uint64_t got, uint64_t want) {
    if (got != want) refuse_file(path, what, std::to_string(got), std::to_string(want));
  };
  same("the version is not the index's", header.version, index.version);
  if (header.version > 1 && header.header_hash != header_hash(header))
    refuse_file(path, "the header is damaged", hash_text(header_hash(header)), hash_text(header.header_hash));
  same("the token width is not the index's", header.width, static_cast<uint64_t>(index.width));
  same("the token count is not the index's", header.tokens, static_cast<uint64_t>(info.tokens));
  same("the vocabulary size is not the index's", header.vocab_size, static_cast<uint64_t>(index.vocab_size));
  same("the hash in the header is not the index's", header.hash, info.hash);
  if (header.version > 1) same("another chunk size", header.chunk_bytes, kChunkBytes);
}

}  // namespace

std::shared_ptr<const InputFile> OpenFiles::get(size_t index, const std::string& path) {
  constexpr size_t kMostOpen = 64;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.index == index) return entry.file;
  if (entries_.size() >= kMostOpen) entries_.erase(entries_.begin());
  const InputWords words = {.where = "data", .fix = "check the path and its permissions"};
  entries_.push_back({index, std::make_shared<const InputFile>(path, words)});
  return entries_.back().file;
}

ShardFile::ShardFile(const std::string& folder, const ShardIndex& index, size_t number,
                     std::shared_ptr<OpenFiles> files)
    : path_(path_in(folder, index.shards[number].name)),
      number_(number),
      files_(std::move(files)),
      version_(index.version) {
  const ShardInfo& info = index.shards[number];
  const auto width = static_cast<uint64_t>(index.width), tokens = static_cast<uint64_t>(info.tokens);
  const uint64_t bytes = files_->get(number_, path_)->size_bytes(), want = file_bytes(version_, tokens, width);
  if (bytes != want)
    refuse_file(path_, bytes < want ? "the shard is cut off" : "the shard is too long",
                std::to_string(bytes) + " bytes", std::to_string(want) + " bytes");
  Header header;
  read_file(0, {reinterpret_cast<char*>(&header), sizeof header});
  check_header(path_, header, index, info);
  payload_bytes_ = tokens * width;
  chunk_bytes_ = version_ == 1 ? payload_bytes_ : kChunkBytes;
  hashes_ = {info.hash};
  if (version_ > 1) read_table(info.hash);
  checked_ = std::make_unique<std::atomic<bool>[]>(hashes_.size());
}

void ShardFile::read_table(uint64_t want) {
  hashes_.resize(chunks_of(payload_bytes_));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(hashes_));
  read_file(sizeof(Header) + payload_bytes_, {reinterpret_cast<char*>(bytes.data()), bytes.size()});
  if (const uint64_t got = xxh3(bytes); got != want)
    refuse_file(path_, "its checksums are damaged", hash_text(got), hash_text(want));
}

void ShardFile::read_file(uint64_t offset, std::span<char> out) const {
  const size_t got = files_->get(number_, path_)->read_at(offset, out);
  if (got < out.size())
    refuse_file(path_, "the shard became shorter while it was read", std::to_string(offset + got) + " bytes",
                "at least " + std::to_string(offset + out.size()) + " bytes");
}

void ShardFile::verify_chunk(uint64_t chunk) const {
  const uint64_t begin = chunk * chunk_bytes_, end = std::min(begin + chunk_bytes_, payload_bytes_);
  std::vector<char> piece(std::min(end - begin, uint64_t{1} << 20));
  uint64_t old = kFnvBasis;
  Xxh3 fresh;
  for (uint64_t at = begin; at < end;) {
    const std::span<char> part = std::span(piece).first(std::min<uint64_t>(piece.size(), end - at));
    read_file(sizeof(Header) + at, part);
    const std::string_view bytes(part.data(), part.size());
    version_ == 1 ? void(old = fnv1a(old, bytes)) : fresh.add(bytes);
    at += part.size();
  }
  const uint64_t got = version_ == 1 ? old : fresh.value();
  if (got != hashes_[chunk])
    refuse_file(path_, strprintf("the tokens are damaged, bytes %lu to %lu", begin, end), hash_text(got),
                hash_text(hashes_[chunk]));
  checked_[chunk].store(true, std::memory_order_relaxed);
}

void ShardFile::verify() const {
  for (uint64_t chunk = 0; chunk < hashes_.size(); ++chunk) verify_chunk(chunk);
}

void ShardFile::read(uint64_t offset, std::span<char> out) const {
  if (out.empty()) return;
  for (uint64_t chunk = offset / chunk_bytes_; chunk * chunk_bytes_ < offset + out.size(); ++chunk)
    if (!checked_[chunk].load(std::memory_order_relaxed)) verify_chunk(chunk);
  read_file(sizeof(Header) + offset, out);
}

}  // namespace ranklab::shards
