// Opens the training data that a run's settings name. All commands use it, so what a command reports about a batch is
// what a run draws. Cost: a text is read whole, shards are opened. Thread rule: immutable, shared by all ranks.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/train_config.h"
#include "core/data/batch_source.h"
#include "core/data/token_dataset.h"
#include "core/data/token_sequence.h"

namespace ranklab {

class DataProvider;
class TextCodec;
class Tokenizer;

// A file whose tokens are contiguous in the data.
struct DataDocument {
  std::string name;
  int64_t begin = 0, end = 0;  // range of the data's tokens
};

// One of the data sets that --data-path or --valid-data-path names.
struct DataSet {
  std::string path = {};                     // as it is named; "": none is
  std::string source = {};                   // in words
  std::vector<DataDocument> documents = {};  // in data order, without gaps
  int64_t vocab_size = 256;
  bool are_bytes = true;       // the tokens
  std::string tokenizer = {};  // its hash; "": bytes, or not known
  std::shared_ptr<const TokenSequence> tokens = nullptr;
  std::shared_ptr<const TokenDataset> dataset = nullptr;
};

struct TrainingData {
  std::vector<DataSet> sets = {};
  std::shared_ptr<const DataBlend> blend = nullptr;  // of these
  std::vector<DataSet> validation_sets = {};         // of validation's own; none: validation is on a part of `sets`
  std::shared_ptr<const DataBlend> validation_blend = nullptr;
  std::shared_ptr<TextCodec> text = nullptr;  // between text and their tokens; null: not known
  int64_t vocab_size() const;                 // the largest
  std::string source() const;                 // for a sentence, of the training's
  std::string validated_on() const;           // for a sentence
  std::string describe() const;               // for the start banner, with numbers
};

// Throws kInvalidArgument (too short for one sequence, sets with different tokens), kBadFile, kIo.
TrainingData open_training_data(const RunPlan& plan);
// Throws as that does, of the data that are named, and reads no text: for plans, which draw no batches and may have
// longer sequences than the corpus that is taken where none is named.
void check_named_data(const RunPlan& plan);

// Batches of them for every rank.
std::shared_ptr<DataProvider> provide_training_data(TrainingData data);

// The tokenizer that made the tokens, where a folder of shards has one.
std::optional<Tokenizer> tokenizer_of_data(const TrainConfig& config);

// The source from which every rank of the run draws its batches.
// `seed_offset`: 0 but for ranks that wrongly have an order of their own (InjectedBug::kSamplerSeedPerRank).
BatchSource make_batch_source(const TrainingData& data, const RunPlan& plan, uint64_t seed_offset = 0);

}  // namespace ranklab
