// The data of a run, as named by --data-path or --valid-data-path: one path, several with weights in the notation of
// Megatron-LM's blends ("0.7 A 0.3 B"), or several that are weighted by their numbers of sequences ("by-size A B").
// Torch-free. Thread rule: any thread; checks whether a path exists.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

struct TrainConfig;

struct DataChoice {
  double weight = 1;
  std::string path;      // "": the default corpus
  bool by_size = false;  // weighted by its number of sequences instead of `weight`
};

// A text is a blend if it begins with a number or "by-size" followed by more words, unless the whole text is the name
// of an existing file or folder. Paths in a blend contain no spaces. Throws kInvalidArgument naming the word.
std::vector<DataChoice> data_choices(const std::string& text, const std::string& flag = "--data-path");

// The setting's text for the words of a command line, where several paths may be given without weights.
std::string data_text(const std::vector<std::string>& words, const std::string& flag = "--data-path");

// Throws kInvalidArgument when the data is text (or generated text) and the vocabulary of the model is too small for
// the byte values that it consists of. Token shards have their own vocabulary.
void check_text_vocabulary(const TrainConfig& config);

// The number that the whole word spells, including infinities and NaN; nothing if it is not a number.
std::optional<double> weight_in(const std::string& word);

}  // namespace ranklab
