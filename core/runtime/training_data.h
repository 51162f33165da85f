// Opens the training data that a run's settings name. All commands use it, so what a command reports about a batch is
// what a run draws. Cost: a text is read whole, shards are opened. Thread rule: immutable, shared by all ranks.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/config/train_config.h"
#include "core/data/batch_source.h"
#include "core/data/token_dataset.h"
#include "core/data/token_sequence.h"

namespace ranklab {

class TextCodec;

// A file whose tokens are contiguous in the data.
struct DataDocument {
  std::string name;
  int64_t begin = 0, end = 0;  // range of the data's tokens
};

struct TrainingData {
  std::string source = {};                   // for the start banner
  std::vector<DataDocument> documents = {};  // in data order, without gaps
  int64_t vocab_size = 256;
  bool are_bytes = true;                      // the tokens
  std::shared_ptr<TextCodec> text = nullptr;  // between text and these tokens; null: not known
  std::shared_ptr<const TokenSequence> tokens = nullptr;
  std::shared_ptr<const TokenDataset> dataset = nullptr;
};

// Throws kInvalidArgument (too short for one sequence), kBadFile, kIo.
TrainingData open_training_data(const RunPlan& plan);

// The source from which every rank of the run draws its batches.
// `seed_offset`: 0 but for ranks that wrongly have an order of their own (InjectedBug::kSamplerSeedPerRank).
BatchSource make_batch_source(const TrainingData& data, const RunPlan& plan, uint64_t seed_offset = 0);

}  // namespace ranklab
