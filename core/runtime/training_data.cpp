#include "core/runtime/training_data.h"

#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/data/corpus.h"
#include "core/data/token_shard.h"

namespace ranklab {
namespace {

TrainingData open_folder(const std::string& folder) {
  TrainingData data{.source = folder + " (token shards)", .tokens = open_shards(folder)};
  const ShardIndex index = read_shard_index(folder);
  data.vocab_size = index.vocab_size;
  int64_t begin = 0;  // a token is a byte of the inputs
  for (const ShardInput& input : index.inputs) {
    const int64_t end = begin + static_cast<int64_t>(input.bytes);
    data.documents.push_back({input.path, begin, end});
    begin = end;
  }
  return data;
}

TrainingData open_text(Corpus corpus) {
  TrainingData data{.source = std::move(corpus.source), .tokens = std::make_shared<TextTokens>(std::move(corpus.text))};
  data.documents.push_back({data.source, 0, data.tokens->size()});
  return data;
}

}  // namespace

TrainingData open_training_data(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const bool folder = !c.mock_data && std::filesystem::is_directory(c.data_path);
  TrainingData data = folder        ? open_folder(c.data_path)
                      : c.mock_data ? open_text({generate_sentences(c.seed, 1 << 20), "generated sentences"})
                                    : open_text(load_corpus(c.data_path));
  try {
    data.dataset = std::make_shared<TokenDataset>(data.tokens, c.model.seq_length, c.validation_fraction);
  } catch (const Error& error) {  // the dataset does not know the name of its tokens' source
    ErrorText text = error.text();
    text.where = "data " + data.source;
    throw Error(error.kind(), text);
  }
  return data;
}

BatchSource make_batch_source(const TrainingData& data, const RunPlan& plan) {
  const BatchShape shape{
      .micro_batch_size = plan.micro_batch_size, .num_microbatches = plan.num_microbatches, .dp_size = plan.dp()};
  return {data.dataset, shape, plan.config.seed};
}

}  // namespace ranklab
