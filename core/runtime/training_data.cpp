#include "core/runtime/training_data.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/config/data_choice.h"
#include "core/data/corpus.h"
#include "core/data/token_shard.h"
#include "core/runtime/text/text_codec.h"

namespace ranklab {
namespace {

// resolve() has seen to it that the model knows bytes; a folder's tokens may be more.
DataSet open_folder(const std::string& folder, int64_t known) {
  DataSet data{.source = folder + " (token shards)", .tokens = open_shards(folder)};
  const ShardIndex index = read_shard_index(folder);
  data.vocab_size = index.vocab_size;
  data.tokenizer = index.format.tokenizer;
  data.are_bytes = index.format.from == InputFormat{}.from && data.tokenizer.empty();
  RANKLAB_CHECK(
      data.vocab_size <= known, ErrorKind::kInvalidArgument, .where = "data " + data.source,
      .what = "the data have tokens that the model does not know",
      .got = "tokens up to " + std::to_string(data.vocab_size - 1) + ", --vocab-size " + std::to_string(known),
      .want = "--vocab-size " + std::to_string(data.vocab_size) + " or more",
      .fix = "pass that, or a preset with the vocabulary of the data");
  int64_t begin = 0;
  for (const ShardInput& input : index.inputs) {
    const int64_t end = begin + input.tokens;
    data.documents.push_back({input.path, begin, end});
    begin = end;
  }
  return data;
}

DataSet open_text(Corpus corpus) {
  DataSet data{.source = std::move(corpus.source), .tokens = std::make_shared<TextTokens>(std::move(corpus.text))};
  data.documents.push_back({data.source, 0, data.tokens->size()});
  return data;
}

DataSet open_set(const std::string& path, const TrainConfig& c) {
  DataSet set = c.mock_data       ? open_text({generate_sentences(c.seed, 1 << 20), "generated sentences"})
                : is_folder(path) ? open_folder(path, c.model.vocab_size)
                                  : open_text(load_corpus(path));
  set.path = path;
  return set;
}

void cut_into_samples(DataSet& set, const TrainConfig& c) {
  try {
    set.dataset = std::make_shared<TokenDataset>(set.tokens, c.model.seq_length, c.validation_fraction);
  } catch (const Error& error) {  // the dataset does not know the name of its tokens' source
    ErrorText text = error.text();
    text.where = "data " + set.source;
    throw Error(error.kind(), text);
  }
}

std::string tokens_of(const DataSet& set) {
  const std::string name = quote(set.path) + ": ";
  if (!set.tokenizer.empty()) return name + "of the tokenizer with hash " + set.tokenizer;
  return name + (set.are_bytes ? "bytes" : "of a tokenizer that it does not say");
}

// One more set of a blend.
void check_beside(const std::vector<DataSet>& others, const DataSet& set) {
  std::error_code ignored;
  for (const DataSet& other : others)
    RANKLAB_CHECK(!std::filesystem::equivalent(other.path, set.path, ignored), ErrorKind::kInvalidArgument,
                  .where = "--data-path", .what = "a blend names one data set twice",
                  .got = quote(other.path) + " and " + quote(set.path), .want = "each once",
                  .fix = "add up their weights");
  const DataSet& first = others.empty() ? set : others[0];
  RANKLAB_CHECK(first.tokenizer == set.tokenizer && first.are_bytes == set.are_bytes, ErrorKind::kInvalidArgument,
                .where = "--data-path", .what = "the data sets of a blend have different tokens",
                .got = tokens_of(first) + "; " + tokens_of(set), .want = "tokens of one tokenizer",
                .fix = "prepare them with one: ranklab data prepare FILE --tokenizer PATH --out FOLDER");
}

std::string numbers_of(const DataSet& set) {
  return std::to_string(set.tokens->size()) + (set.are_bytes ? " byte tokens, " : " tokens, ") +
         std::to_string(set.dataset->samples(Split::kTrain)) + " training sequences";
}

}  // namespace

int64_t TrainingData::vocab_size() const {
  int64_t size = 0;
  for (const DataSet& set : sets) size = std::max(size, set.vocab_size);
  return size;
}

std::string TrainingData::source() const {
  std::vector<std::string> sources;
  for (const DataSet& set : sets) sources.push_back(set.source);
  return join(sources, " and ");
}

std::string TrainingData::describe() const {
  if (sets.size() == 1) return sets[0].source + ", " + numbers_of(sets[0]);
  std::vector<std::string> parts;
  for (size_t i = 0; i < sets.size(); ++i)
    parts.push_back(strprintf("%.4g %% ", 100 * blend->shares()[i]) + sets[i].source + ", " + numbers_of(sets[i]));
  return "a blend: " + join(parts, "; ");
}

TrainingData open_training_data(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  TrainingData data{.text = make_text_codec(tokenizer_of_data(c), c.model.vocab_size)};
  const std::vector<DataChoice> choices = data_choices(c.data_path);
  for (const DataChoice& choice : choices) {
    DataSet set = open_set(choice.path, c);
    check_beside(data.sets, set);
    data.sets.push_back(std::move(set));
  }
  std::vector<double> weights;
  for (size_t i = 0; i < choices.size(); ++i) {
    DataSet& set = data.sets[i];
    cut_into_samples(set, c);
    weights.push_back(choices[i].by_size ? static_cast<double>(set.dataset->samples(Split::kTrain))
                                         : choices[i].weight);
  }
  data.blend = std::make_shared<DataBlend>(std::move(weights));
  return data;
}

std::optional<Tokenizer> tokenizer_of_data(const TrainConfig& config) {
  const std::string path = data_choices(config.data_path)[0].path;
  if (config.mock_data || !is_folder(path)) return {};
  return open_shard_tokenizer(path, read_shard_index(path));
}

BatchSource make_batch_source(const TrainingData& data, const RunPlan& plan, uint64_t seed_offset) {
  const BatchShape shape{
      .micro_batch_size = plan.micro_batch_size, .num_microbatches = plan.num_microbatches, .dp_size = plan.dp()};
  BlendedSets sets{.sets = {}, .blend = data.blend};
  for (const DataSet& set : data.sets) sets.sets.push_back(set.dataset);
  return {std::move(sets), shape, plan.config.seed + seed_offset, plan.ramp};
}

}  // namespace ranklab
