// Identifies a corpus, wherever its file lies: the number of tokens and training samples, and a hash of the tokens,
// sampled as 64 stretches of 64 Ki when there are more. Cost: reads at most 4 Mi tokens. Thread rule: pure.
#pragma once
#include <map>
#include <string>

#include "core/data/token_dataset.h"
#include "core/data/token_sequence.h"

namespace ranklab {

std::map<std::string, std::string> data_identity(const TokenSequence& tokens, const TokenDataset& dataset);

}  // namespace ranklab
