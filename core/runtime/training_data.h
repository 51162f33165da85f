// The data that a run trains on, as its settings name it, and what it is made of. One place opens it, so that what a
// command tells of a batch is what a run draws. Cost: a text is read whole, shards are opened. Thread rule: immutable,
// shared by all ranks.
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

// A file whose tokens lie together in the data.
struct DataDocument {
  std::string name;
  int64_t begin = 0, end = 0;  // tokens of the data
};

struct TrainingData {
  std::string source = {};                   // for the start banner
  std::vector<DataDocument> documents = {};  // in their order, without gaps
  int64_t vocab_size = 256;
  std::shared_ptr<const TokenSequence> tokens = nullptr;
  std::shared_ptr<const TokenDataset> dataset = nullptr;
};

// Throws kInvalidArgument (too short for one sequence), kBadFile, kIo.
TrainingData open_training_data(const RunPlan& plan);

// What every rank of the run draws its batches from.
BatchSource make_batch_source(const TrainingData& data, const RunPlan& plan);

}  // namespace ranklab
