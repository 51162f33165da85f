#include "core/data/megatron_output.h"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/data/megatron_format.h"
#include "core/data/token_shard.h"

namespace ranklab {
namespace {

constexpr int64_t kTokensAtOnce = 1 << 20;

ErrorText cannot_write() {
  return {.where = "data", .what = "cannot write the dataset", .fix = "check the path and the free space"};
}

// Computes the lengths of documents from their ends.
class DocumentLengths {
 public:
  explicit DocumentLengths(const ShardIndex& index) : end_token_(index.format.end_token) {
    for (const ShardInput& input : index.inputs) input_ends_.push_back(end_ += input.tokens);
  }
  void add(std::span<const int64_t> tokens) {
    for (const int64_t token : tokens) {
      ++at_;
      const bool input_ends = next_input_ < input_ends_.size() && at_ == input_ends_[next_input_];
      if (input_ends) pass_input();
      if (end_token_ ? token == *end_token_ || input_ends : input_ends) close();
    }
  }
  const std::vector<int32_t>& lengths() const { return lengths_; }

 private:
  // Empty inputs end where the input before them ends.
  void pass_input() {
    while (next_input_ < input_ends_.size() && input_ends_[next_input_] == at_) ++next_input_;
  }
  void close() {
    const int64_t length = at_ - begin_;
    RANKLAB_CHECK(length <= std::numeric_limits<int32_t>::max(), ErrorKind::kInvalidArgument, .where = "data export",
                  .what = "a document is too long for Megatron-LM's index", .got = std::to_string(length) + " tokens",
                  .want = "at most 2147483647", .fix = "prepare the shards of smaller files, or with --append-eod");
    lengths_.push_back(static_cast<int32_t>(length));
    begin_ = at_;
  }
  std::optional<uint32_t> end_token_;
  std::vector<int64_t> input_ends_;
  int64_t end_ = 0, at_ = 0, begin_ = 0;
  size_t next_input_ = 0;
  std::vector<int32_t> lengths_;
};

template <typename T>
std::string_view bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

template <typename T>
void append(AtomicFile& file, std::span<const int64_t> tokens) {
  std::vector<T> narrow(tokens.size());
  std::transform(tokens.begin(), tokens.end(), narrow.begin(), [](int64_t token) { return static_cast<T>(token); });
  file.write(bytes_of(narrow));
}

void write_tokens(const TokenSequence& tokens, uint8_t dtype, const std::string& path, DocumentLengths& documents) {
  AtomicFile file(path, cannot_write());
  std::vector<int64_t> block;
  for (int64_t begin = 0; begin < tokens.size(); begin += kTokensAtOnce) {
    block.resize(static_cast<size_t>(std::min(kTokensAtOnce, tokens.size() - begin)));
    tokens.read(begin, block);
    documents.add(block);
    if (dtype == megatron::kUint16)
      append<uint16_t>(file, block);
    else
      append<int32_t>(file, block);
  }
  file.commit();
}

void write_index(const std::vector<int32_t>& lengths, uint8_t dtype, const std::string& path) {
  std::vector<int64_t> begins, ends = {0};
  int64_t at = 0;
  for (const int32_t length : lengths) {
    begins.push_back(at);
    at += int64_t{length} * static_cast<int64_t>(megatron::find_type(dtype)->bytes);
    ends.push_back(static_cast<int64_t>(begins.size()));
  }
  const std::vector<uint64_t> version = {1}, counts = {lengths.size(), ends.size()};
  AtomicFile file(path, cannot_write());
  file.write({megatron::kMagic.data(), megatron::kMagic.size()});
  file.write(bytes_of(version));
  file.write({reinterpret_cast<const char*>(&dtype), 1});
  for (const std::string_view part : {bytes_of(counts), bytes_of(lengths), bytes_of(begins), bytes_of(ends)})
    file.write(part);
  file.commit();
}

}  // namespace

std::string megatron_bin(const std::string& prefix) { return megatron::prefix_of(prefix) + ".bin"; }
std::string megatron_index(const std::string& prefix) { return megatron::prefix_of(prefix) + ".idx"; }

MegatronExported export_megatron(const std::string& folder, const std::string& prefix) {
  const ShardIndex index = read_shard_index(folder);
  const std::shared_ptr<const TokenSequence> tokens = open_shards(folder);
  const uint8_t dtype = megatron::type_of(index.vocab_size);
  DocumentLengths documents(index);
  write_tokens(*tokens, dtype, megatron_bin(prefix), documents);
  write_index(documents.lengths(), dtype, megatron_index(prefix));
  return {.bin = megatron_bin(prefix),
          .index = megatron_index(prefix),
          .dtype = megatron::find_type(dtype)->name,
          .tokens = tokens->size(),
          .documents = static_cast<int64_t>(documents.lengths().size())};
}

}  // namespace ranklab
