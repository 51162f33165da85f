// Identifies a run's data, wherever its files are: the number of tokens and training samples, and a hash of the tokens,
// sampled as 64 stretches of 64 Ki tokens when there are more; for a blend, the same for each data set, and its share.
// Cost: reads at most 4 Mi tokens per set. Thread rule: pure.
#pragma once
#include <map>
#include <string>

namespace ranklab {

struct TrainingData;
std::map<std::string, std::string> data_identity(const TrainingData& data);

}  // namespace ranklab
