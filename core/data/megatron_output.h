// Token shards as an indexed dataset of Megatron-LM (megatron_format.h): with a token that ends documents, each of them
// is a document; without, each input of the shards is. Cost: one pass, 8 bytes of memory a document.
// Thread rule: one thread.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

struct MegatronExported {
  std::string bin = {}, index = {};  // the files
  std::string dtype = {};
  int64_t tokens = 0, documents = 0;
};

// The files that it writes.
std::string megatron_bin(const std::string& prefix);
std::string megatron_index(const std::string& prefix);
// Throws kBadFile, kIo; kInvalidArgument for a document of 2^31 tokens or more, whose length the index cannot say.
MegatronExported export_megatron(const std::string& folder, const std::string& prefix);

}  // namespace ranklab
