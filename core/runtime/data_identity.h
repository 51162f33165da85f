// Identifies a run's data, wherever their files lie: the number of tokens and training samples, and a hash of the
// tokens, sampled as 64 stretches of 64 Ki when there are more; of a blend those of each data set and its share. Cost:
// reads at most 4 Mi tokens of a set. Thread rule: pure.
#pragma once
#include <map>
#include <string>

namespace ranklab {

struct TrainingData;
std::map<std::string, std::string> data_identity(const TrainingData& data);

}  // namespace ranklab
