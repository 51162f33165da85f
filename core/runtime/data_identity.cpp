#include "core/runtime/data_identity.h"

#include <algorithm>
#include <vector>

#include "core/base/checksum.h"
#include "core/base/text.h"
#include "core/runtime/training_data.h"

namespace ranklab {
namespace {

std::string hash_of(const TokenSequence& tokens) {
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
  return xxh3_text(hash.value());
}

}  // namespace

std::map<std::string, std::string> data_identity(const TrainingData& data) {
  std::map<std::string, std::string> identity;
  for (size_t i = 0; i < data.sets.size(); ++i) {
    const DataSet& set = data.sets[i];
    const std::string of = data.sets.size() == 1 ? "" : " of data set " + std::to_string(i + 1);
    identity["tokens" + of] = std::to_string(set.tokens->size());
    identity["training samples" + of] = std::to_string(set.dataset->samples(Split::kTrain));
    identity["xxh3" + of] = hash_of(*set.tokens);
    // All digits: the order of the sequences depends on them.
    if (!of.empty()) identity["share" + of] = strprintf("%.17g", data.blend->shares()[i]);
  }
  return identity;
}

}  // namespace ranklab
