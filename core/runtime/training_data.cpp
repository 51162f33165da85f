#include "core/runtime/training_data.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/config/data_choice.h"
#include "core/data/corpus.h"
#include "core/data/token_shard.h"
#include "core/runtime/text/text_codec.h"

namespace ranklab {
namespace {

// A folder has a vocabulary of its own, which the model's must cover. It may also be smaller than 256, so these tokens
// are bytes only if the folder was made of bytes.
DataSet open_folder(const std::string& folder, int64_t known) {
  DataSet data{.source = folder + " (token shards)", .tokens = open_shards(folder)};
  const ShardIndex index = read_shard_index(folder);
  data.vocab_size = index.vocab_size;
  data.tokenizer = index.format.tokenizer;
  data.are_bytes = index.format.gives_bytes();
  RANKLAB_CHECK(
      data.vocab_size <= known, ErrorKind::kInvalidArgument, .where = "data " + data.source,
      .what = "the data contains tokens outside the model's vocabulary",
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

// A text that is not read: enough to tell whether a run could.
class MeasuredText : public TokenSequence {
 public:
  explicit MeasuredText(int64_t bytes) : bytes_(bytes) {}
  int64_t size() const override { return bytes_; }
  void read(int64_t, std::span<int64_t>) const override {
    throw Error(ErrorKind::kInternal, {.where = "data", .what = "a text was measured, and is now to be read"});
  }

 private:
  int64_t bytes_;
};

enum class Texts { kRead, kMeasured };

DataSet open_set(const std::string& path, const TrainConfig& c, const std::string& flag, Texts texts) {
  DataSet set;
  if (is_folder(path))
    set = open_folder(path, c.model.vocab_size);
  else if (texts == Texts::kRead)
    set = open_text(load_corpus(path, flag));
  else
    set = {.source = path, .tokens = std::make_shared<MeasuredText>(measure_corpus(path, flag))};
  set.path = path;
  return set;
}

void cut_into_samples(DataSet& set, const TrainConfig& c, double validation_fraction) {
  try {
    set.dataset = std::make_shared<TokenDataset>(set.tokens, c.model.seq_length, validation_fraction);
  } catch (const Error& error) {  // the dataset does not know the name of its tokens' source
    ErrorText text = error.text();
    text.where = "data " + set.source;
    throw Error(error.kind(), text);
  }
}

std::string sources_of(const std::vector<DataSet>& sets) {
  std::vector<std::string> sources;
  for (const DataSet& set : sets) sources.push_back(set.source);
  return join(sources, " and ");
}

std::string tokens_of(const DataSet& set) {
  return quote(set.path) + ": " + kind_of_tokens(set.tokenizer, set.are_bytes);
}

// Checks one more set of a blend, which was given with `flag`.
void check_beside(const std::vector<DataSet>& others, const DataSet& set, const std::string& flag) {
  std::error_code ignored;
  for (const DataSet& other : others)
    RANKLAB_CHECK(!std::filesystem::equivalent(other.path, set.path, ignored), ErrorKind::kInvalidArgument,
                  .where = flag, .what = "a blend names one data set twice",
                  .got = quote(other.path) + " and " + quote(set.path), .want = "each once",
                  .fix = "add up their weights");
}

void check_tokens(const DataSet& first, const DataSet& set, const std::string& flag, const std::string& whose) {
  RANKLAB_CHECK(first.tokenizer == set.tokenizer && first.are_bytes == set.are_bytes, ErrorKind::kInvalidArgument,
                .where = flag, .what = whose + " have different tokens",
                .got = tokens_of(first) + "; " + tokens_of(set), .want = "tokens of one tokenizer",
                .fix = "prepare them with one: ranklab data prepare FILE --tokenizer PATH --out FOLDER");
}

std::string described(const DataSet& set, const char* sequence) {
  return set.source + ", " + std::to_string(set.tokens->size()) + (set.are_bytes ? " byte tokens, " : " tokens, ") +
         counted(set.dataset->samples(Split::kTrain), sequence);
}

std::string described(const std::vector<DataSet>& sets, const DataBlend& blend, const char* sequence) {
  if (sets.size() == 1) return described(sets[0], sequence);
  std::vector<std::string> parts;
  for (size_t i = 0; i < sets.size(); ++i)
    parts.push_back(strprintf("%.4g %% ", 100 * blend.shares()[i]) + described(sets[i], sequence));
  return "a blend: " + join(parts, "; ");
}

std::vector<DataSet> open_sets(const std::vector<DataChoice>& choices, const TrainConfig& c, const std::string& flag,
                               Texts texts) {
  std::vector<DataSet> sets;
  for (const DataChoice& choice : choices) {
    DataSet set = open_set(choice.path, c, flag, texts);
    check_beside(sets, set, flag);
    check_tokens(sets.empty() ? set : sets[0], set, flag, "the data sets of a blend");
    sets.push_back(std::move(set));
  }
  return sets;
}

// Also cuts the sets into samples.
std::shared_ptr<const DataBlend> blend_of(std::vector<DataSet>& sets, const std::vector<DataChoice>& choices,
                                          const TrainConfig& c, double validation_fraction) {
  std::vector<double> weights;
  for (size_t i = 0; i < choices.size(); ++i) {
    cut_into_samples(sets[i], c, validation_fraction);
    weights.push_back(choices[i].by_size ? static_cast<double>(sets[i].dataset->samples(Split::kTrain))
                                         : choices[i].weight);
  }
  return std::make_shared<DataBlend>(std::move(weights));
}

void open_validation(TrainingData& data, const TrainConfig& c, Texts texts) {
  const std::string flag = "--valid-data-path";
  const std::vector<DataChoice> choices = data_choices(c.valid_data_path, flag);
  data.validation_sets = open_sets(choices, c, flag, texts);
  if (!data.sets.empty())  // of a plan without named data for training
    check_tokens(data.sets[0], data.validation_sets[0], flag, "the data of training and validation");
  data.validation_blend = blend_of(data.validation_sets, choices, c, 0);
}

}  // namespace

int64_t TrainingData::vocab_size() const {
  int64_t size = 0;
  for (const DataSet& set : sets) size = std::max(size, set.vocab_size);
  for (const DataSet& set : validation_sets) size = std::max(size, set.vocab_size);
  return size;
}

std::string TrainingData::source() const { return sources_of(sets); }

std::string TrainingData::validated_on() const {
  return validation_sets.empty() ? "the end of " + source() : sources_of(validation_sets);
}

std::string TrainingData::describe() const {
  const std::string training = described(sets, *blend, "training sequence");
  if (validation_sets.empty()) return training;
  return training + "; validation on " + described(validation_sets, *validation_blend, "sequence");
}

TrainingData open_training_data(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  check_text_vocabulary(c);
  TrainingData data{.text = make_text_codec(tokenizer_of_data(c), c.model.vocab_size)};
  const std::vector<DataChoice> choices = data_choices(c.data_path);
  if (c.mock_data)
    data.sets.push_back(open_text({generate_sentences(c.seed, 1 << 20), "generated sentences"}));
  else
    data.sets = open_sets(choices, c, "--data-path", Texts::kRead);
  data.blend = blend_of(data.sets, choices, c, c.validation_fraction);
  if (!c.valid_data_path.empty()) open_validation(data, c, Texts::kRead);
  return data;
}

TrainingData opened_data(const RunPlan& plan) {
  static std::mutex mutex;
  static std::string opened;
  static std::optional<TrainingData> data;
  const TrainConfig& c = plan.config;
  const std::string wanted =
      strprintf("%s %s %d %ld %ld %ld %.17g", quote(c.data_path).c_str(), quote(c.valid_data_path).c_str(),
                c.mock_data ? 1 : 0, static_cast<long>(c.seed), static_cast<long>(c.model.seq_length),
                static_cast<long>(c.model.vocab_size), c.validation_fraction);
  const std::lock_guard lock(mutex);
  if (!data || opened != wanted) {
    data.reset();
    data = open_training_data(plan);
    opened = wanted;
  }
  return *data;
}

void check_named_data(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  check_text_vocabulary(c);
  TrainingData data;
  if (!c.mock_data && !c.data_path.empty()) {
    const std::vector<DataChoice> choices = data_choices(c.data_path);
    data.sets = open_sets(choices, c, "--data-path", Texts::kMeasured);
    blend_of(data.sets, choices, c, c.validation_fraction);
  }
  if (!c.valid_data_path.empty()) open_validation(data, c, Texts::kMeasured);
}

std::string kind_of_tokens(const std::string& tokenizer, bool are_bytes) {
  if (!tokenizer.empty()) return "of the tokenizer with hash " + tokenizer;
  return are_bytes ? "bytes" : "of an unknown tokenizer";
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
  BatchSource source(std::move(sets), shape, plan.config.seed + seed_offset, plan.ramp);
  if (data.validation_sets.empty()) return source;
  BlendedSets validation{.sets = {}, .blend = data.validation_blend};
  for (const DataSet& set : data.validation_sets) validation.sets.push_back(set.dataset);
  source.validate_on(std::move(validation));
  return source;
}

}  // namespace ranklab
