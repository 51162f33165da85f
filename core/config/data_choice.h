// The data of a run as --data-path or --valid-data-path names them: one path, or several with weights, as Megatron-LM's
// blends are written
// ("0.7 A 0.3 B"), or each by the number of its sequences ("by-size A B"). Torch-free. Thread rule: any thread; asks
// whether a path exists.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

struct TrainConfig;

struct DataChoice {
  double weight = 1;
  std::string path;      // "": the corpus that is there
  bool by_size = false;  // instead of the weight
};

// A text that begins with a number or "by-size" and goes on is a blend, unless it is as a whole the name of what there
// is; a blend's paths have no spaces. Throws kInvalidArgument naming the word.
std::vector<DataChoice> data_choices(const std::string& text, const std::string& flag = "--data-path");

// The text for the words of a command line, where several paths may have no weights.
std::string data_text(const std::vector<std::string>& words, const std::string& flag = "--data-path");

// Throws kInvalidArgument for texts, or what stands for them, with a model that does not know the bytes that they are
// made of. Shards have an own vocabulary.
void check_text_vocabulary(const TrainConfig& config);

// The number that all of a word is, infinities and NaN among them.
std::optional<double> weight_in(const std::string& word);

}  // namespace ranklab
