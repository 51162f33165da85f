// Any bytes as a folder of token shards: what stands before the first zero byte is index.json, the rest the shard
// "s.bin". The reader refuses with ranklab's own error, or every token it hands out lies in the vocabulary.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/data/token_shard.h"
#include "tests/fuzz/scratch_folder.h"

using namespace ranklab;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder kFolder("fuzz_shards");
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(bytes.find('\0'), bytes.size());
  kFolder.write("index.json", bytes.substr(0, cut));
  kFolder.write("s.bin", cut < bytes.size() ? bytes.substr(cut + 1) : std::string_view{});
  try {
    const int64_t vocabulary = read_shard_index(kFolder.path()).vocab_size;
    const auto tokens = open_shards(kFolder.path());
    std::vector<int64_t> some(static_cast<size_t>(std::min<int64_t>(tokens->size(), 4096)));
    tokens->read(tokens->size() - static_cast<int64_t>(some.size()), some);
    for (const int64_t token : some) {
      if (token < 0 || token >= vocabulary) std::abort();
    }
    verify_shards(kFolder.path());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
