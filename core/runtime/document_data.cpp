#include "core/runtime/document_data.h"

#include <utility>

#include "core/parallel/tensor/vocab_cross_entropy.h"
#include "core/runtime/wrapped_data.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

class DocumentData final : public WrappedData {
 public:
  DocumentData(std::unique_ptr<RankData> data, const DocumentSettings& settings)
      : WrappedData(std::move(data)), settings_(settings) {}

  Batch train_batch(int64_t step, int64_t microbatch) override { return marked(inner().train_batch(step, microbatch)); }
  Batch validation_batch(int64_t index, int64_t microbatch) override {
    return marked(inner().validation_batch(index, microbatch));
  }
  std::optional<int64_t> global_tokens_per_batch() const override {
    return settings_.eod_mask_loss ? std::nullopt : inner().global_tokens_per_batch();
  }
  bool marks_documents() const override { return settings_.resets() || inner().marks_documents(); }

 private:
  Batch marked(Batch batch) const {
    if (!has_tokens() || batch.tokens_BS.is_meta()) return batch;
    const NoCostScope free;
    if (const auto documents = documents_of(batch.tokens_BS, settings_)) batch.documents = documents;
    if (settings_.eod_mask_loss)
      batch.targets_BS = batch.targets_BS.masked_fill(batch.tokens_BS.eq(settings_.eod_token), kIgnoreTarget);
    return batch;
  }

  DocumentSettings settings_;
};

std::vector<int64_t> starts_of(const int64_t* tokens, int64_t count, int64_t end_token) {
  std::vector<int64_t> starts = {0};
  for (int64_t i = 0; i + 1 < count; ++i)
    if (tokens[i] == end_token) starts.push_back(i + 1);
  return starts;
}

}  // namespace

std::shared_ptr<const Documents> documents_of(const at::Tensor& tokens_BS, const DocumentSettings& settings) {
  if (!settings.resets()) return nullptr;
  const at::Tensor tokens = tokens_BS.to(at::kCPU).contiguous();
  const int64_t sequences = tokens.size(0), length = tokens.size(1);
  auto documents = std::make_shared<Documents>();
  documents->separate = settings.reset_attention_mask;
  const at::Tensor position = at::empty({sequences, length}, at::kLong), segment = at::empty_like(position);
  for (int64_t i = 0; i < sequences; ++i) {
    const auto starts = starts_of(tokens.const_data_ptr<int64_t>() + i * length, length, settings.eod_token);
    int64_t* row = position.mutable_data_ptr<int64_t>() + i * length;
    int64_t* numbers = segment.mutable_data_ptr<int64_t>() + i * length;
    size_t document = 0;
    for (int64_t s = 0; s < length; ++s) {
      if (document + 1 < starts.size() && starts[document + 1] == s) ++document;
      row[s] = s - starts[document];
      numbers[s] = static_cast<int64_t>(document);
    }
    documents->starts.push_back(starts);
  }
  if (settings.reset_position_ids) documents->position_BS = position.to(tokens_BS.device());
  if (documents->separate) documents->segment_BS = segment.to(tokens_BS.device());
  return documents;
}

std::unique_ptr<RankData> with_documents(std::unique_ptr<RankData> data, const DocumentSettings& settings) {
  if (!settings.any()) return data;
  return std::make_unique<DocumentData>(std::move(data), settings);
}

}  // namespace ranklab
