// Writes token shards as an indexed dataset of Megatron-LM (megatron_format.h). With a token that ends documents, each
// document becomes one there; without it, each input of the shards does. Cost: one pass, and 8 bytes of memory per
// document. Thread rule: one thread.
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
// Throws kBadFile, kIo; kInvalidArgument for a document of 2^31 or more tokens, whose length the index cannot store.
MegatronExported export_megatron(const std::string& folder, const std::string& prefix);

}  // namespace ranklab
