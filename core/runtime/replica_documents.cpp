#include "core/runtime/replica_documents.h"

#include "core/runtime/document_data.h"
#include "core/runtime/training_data.h"

namespace ranklab {

std::vector<ReplicaDocuments> replica_documents(const TrainingData& data, const RunPlan& plan, int64_t step) {
  const BatchSource source = make_batch_source(data, plan);
  std::vector<ReplicaDocuments> replicas(static_cast<size_t>(plan.dp()));
  for (int rank = 0; rank < plan.dp(); ++rank) {
    ReplicaDocuments& replica = replicas[static_cast<size_t>(rank)];
    for (int64_t microbatch = 0; microbatch < plan.num_microbatches; ++microbatch) {
      const at::Tensor tokens_BS = source.train(step, microbatch, rank).tokens_BS;
      const auto documents = documents_of(tokens_BS, plan.config.documents);
      for (std::vector<int64_t> starts : documents->starts) {
        replica.count += static_cast<int64_t>(starts.size());
        starts.push_back(tokens_BS.size(1));
        for (size_t i = 0; i + 1 < starts.size(); ++i) {
          const int64_t length = starts[i + 1] - starts[i];
          replica.pairs += length * (length + 1) / 2;
        }
      }
    }
  }
  return replicas;
}

}  // namespace ranklab
