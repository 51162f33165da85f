#include "core/runtime/training_data.h"

#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/data/corpus.h"
#include "core/data/token_shard.h"
#include "core/runtime/text_codec.h"

namespace ranklab {
namespace {

// resolve() has seen to it that the model knows bytes; a folder's tokens may be more.
TrainingData open_folder(const std::string& folder, int64_t known) {
  TrainingData data{.source = folder + " (token shards)", .tokens = open_shards(folder)};
  const ShardIndex index = read_shard_index(folder);
  data.vocab_size = index.vocab_size;
  data.are_bytes = index.format.from == InputFormat{}.from && index.format.tokenizer.empty();
  data.text = make_text_codec(open_shard_tokenizer(folder, index), known);
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

TrainingData open_text(Corpus corpus, int64_t known) {
  TrainingData data{.source = std::move(corpus.source), .tokens = std::make_shared<TextTokens>(std::move(corpus.text))};
  data.text = make_text_codec({}, known);
  data.documents.push_back({data.source, 0, data.tokens->size()});
  return data;
}

}  // namespace

TrainingData open_training_data(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const bool folder = !c.mock_data && std::filesystem::is_directory(c.data_path);
  TrainingData data = folder ? open_folder(c.data_path, c.model.vocab_size)
                      : c.mock_data
                          ? open_text({generate_sentences(c.seed, 1 << 20), "generated sentences"}, c.model.vocab_size)
                          : open_text(load_corpus(c.data_path), c.model.vocab_size);
  try {
    data.dataset = std::make_shared<TokenDataset>(data.tokens, c.model.seq_length, c.validation_fraction);
  } catch (const Error& error) {  // the dataset does not know the name of its tokens' source
    ErrorText text = error.text();
    text.where = "data " + data.source;
    throw Error(error.kind(), text);
  }
  return data;
}

BatchSource make_batch_source(const TrainingData& data, const RunPlan& plan, uint64_t seed_offset) {
  const BatchShape shape{
      .micro_batch_size = plan.micro_batch_size, .num_microbatches = plan.num_microbatches, .dp_size = plan.dp()};
  return {data.dataset, shape, plan.config.seed + seed_offset, plan.ramp};
}

}  // namespace ranklab
