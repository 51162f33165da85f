// Opens the training data that a run's settings name. All commands use it, so what a command reports about a batch is
// what a run gets. Cost: a text is read as a whole; shards are only opened. Thread rule: immutable, shared by all
// ranks.
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
  int64_t begin = 0, end = 0;  // range in the data's tokens
};

// One of the data sets named by --data-path or --valid-data-path.
struct DataSet {
  std::string path = {};                     // as it was named; "": none was
  std::string source = {};                   // description in words
  std::vector<DataDocument> documents = {};  // in data order, without gaps
  int64_t vocab_size = 256;
  bool are_bytes = true;       // whether the tokens are bytes
  std::string tokenizer = {};  // hash of its tokenizer; "": bytes, or unknown
  std::shared_ptr<const TokenSequence> tokens = nullptr;
  std::shared_ptr<const TokenDataset> dataset = nullptr;
};

struct TrainingData {
  std::vector<DataSet> sets = {};
  std::shared_ptr<const DataBlend> blend = nullptr;  // blend of these sets
  std::vector<DataSet> validation_sets = {};  // data sets for validation; empty: validation uses a part of `sets`
  std::shared_ptr<const DataBlend> validation_blend = nullptr;
  std::shared_ptr<TextCodec> text = nullptr;  // converts between text and their tokens; null: unknown
  int64_t vocab_size() const;                 // the largest of the sets
  std::string source() const;                 // the training data, as part of a sentence
  std::string validated_on() const;           // the validation data, as part of a sentence
  std::string describe() const;               // with numbers, for the start banner
};

// Throws kInvalidArgument (too short for one sequence, sets with different tokens), kBadFile, kIo.
TrainingData open_training_data(const RunPlan& plan);
// The same. The data stays open for the next plan with the same data, because a search makes dozens of plans.
TrainingData opened_data(const RunPlan& plan);
// Throws as that does, of the data that are named, and reads no text: for plans, which draw no batches and may have
// longer sequences than the corpus that is taken where none is named.
void check_named_data(const RunPlan& plan);

// Provides batches of this data to every rank.
std::shared_ptr<DataProvider> provide_training_data(TrainingData data);

// "bytes", "of the tokenizer with hash 0123456789abcdef", or "of an unknown tokenizer". `tokenizer`: its hash, or "".
std::string kind_of_tokens(const std::string& tokenizer, bool are_bytes);

// The tokenizer that produced the tokens, if a folder of shards has one.
std::optional<Tokenizer> tokenizer_of_data(const TrainConfig& config);

// The source from which every rank of the run gets its batches. `seed_offset`: 0, except for ranks that wrongly shuffle
// in an order of their own (InjectedBug::kSamplerSeedPerRank).
BatchSource make_batch_source(const TrainingData& data, const RunPlan& plan, uint64_t seed_offset = 0);

}  // namespace ranklab
