#include "core/runtime/data_identity.h"

#include <algorithm>
#include <vector>

#include "core/base/checksum.h"

namespace ranklab {

std::map<std::string, std::string> data_identity(const TokenSequence& tokens, const TokenDataset& dataset) {
  constexpr int64_t kStretches = 64, kTokens = int64_t{1} << 16;
  const int64_t size = tokens.size();
  const int64_t stretches = std::min(kStretches, (size + kTokens - 1) / kTokens);
  Xxh3 hash;
  std::vector<int64_t> buffer;
  for (int64_t i = 0; i < stretches; ++i) {
    const int64_t begin = stretches < kStretches ? i * kTokens : (size - kTokens) / (kStretches - 1) * i;
    buffer.resize(static_cast<size_t>(std::min(kTokens, size - begin)));
    tokens.read(begin, buffer);
    hash.add({reinterpret_cast<const char*>(buffer.data()), buffer.size() * sizeof(int64_t)});
  }
  return {{"tokens", std::to_string(size)},
          {"training samples", std::to_string(dataset.samples(Split::kTrain))},
          {"xxh3", xxh3_text(hash.value())}};
}

}  // namespace ranklab
