// A rank's data that forwards every call: a base class for objects between the data and the engine that change some of
// the calls. Thread rule: as for the data.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/runtime/components.h"

namespace ranklab {

class WrappedData : public RankData {
 public:
  explicit WrappedData(std::unique_ptr<RankData> inner) : inner_(std::move(inner)) {}
  Batch train_batch(int64_t step, int64_t microbatch) override { return inner_->train_batch(step, microbatch); }
  void seek(int64_t step, int64_t consumed_samples) override { inner_->seek(step, consumed_samples); }
  bool has_validation() const override { return inner_->has_validation(); }
  Batch validation_batch(int64_t index, int64_t microbatch) override {
    return inner_->validation_batch(index, microbatch);
  }
  std::optional<int64_t> global_tokens_per_batch() const override { return inner_->global_tokens_per_batch(); }
  bool marks_documents() const override { return inner_->marks_documents(); }
  bool has_tokens() const override { return inner_->has_tokens(); }

 protected:
  RankData& inner() { return *inner_; }
  const RankData& inner() const { return *inner_; }

 private:
  std::unique_ptr<RankData> inner_;
};

// A provider of what `wrap` makes of each rank's data of `inner`. Called on every rank's thread.
using WrapData = std::function<std::unique_ptr<RankData>(std::unique_ptr<RankData> inner, const RankContext& ctx,
                                                         const RunPlan& plan)>;
std::shared_ptr<DataProvider> wrap_data(std::shared_ptr<DataProvider> inner, WrapData wrap);

}  // namespace ranklab
