// The documents in a step's batches, by data-parallel rank. Where attention stays within documents, the rank with the
// most documents has the most kernels, and the one with the longest documents has the most arithmetic. Cost: reads a
// global batch. Thread rule: any.
#pragma once
#include <cstdint>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

struct TrainingData;  // core/runtime/training_data.h

struct ReplicaDocuments {
  int64_t count = 0;
  int64_t pairs = 0;  // number of (query, key) pairs
};
std::vector<ReplicaDocuments> replica_documents(const TrainingData& data, const RunPlan& plan, int64_t step);

}  // namespace ranklab
