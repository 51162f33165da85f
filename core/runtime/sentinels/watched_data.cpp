#include "core/runtime/sentinels/watched_data.h"

#include <utility>

namespace ranklab {
namespace {

class WatchedData final : public RankData {
 public:
  WatchedData(std::unique_ptr<RankData> data, const std::vector<BatchWatch*>& watches,
              const std::function<int64_t()>& wall_ns)
      : data_(std::move(data)), watches_(watches), wall_ns_(wall_ns) {}

  Batch train_batch(int64_t step, int64_t microbatch) override {
    const int64_t begin_ns = wall_ns_();
    Batch batch = data_->train_batch(step, microbatch);
    const int64_t wait_ns = wall_ns_() - begin_ns;
    for (BatchWatch* watch : watches_) watch->loaded(batch, wait_ns);
    return batch;
  }
  void seek(int64_t step, int64_t consumed_samples) override { data_->seek(step, consumed_samples); }
  bool has_validation() const override { return data_->has_validation(); }
  Batch validation_batch(int64_t index, int64_t microbatch) override {
    return data_->validation_batch(index, microbatch);
  }
  std::optional<int64_t> global_tokens_per_batch() const override { return data_->global_tokens_per_batch(); }
  bool marks_documents() const override { return data_->marks_documents(); }
  bool has_tokens() const override { return data_->has_tokens(); }

 private:
  std::unique_ptr<RankData> data_;
  const std::vector<BatchWatch*>& watches_;
  const std::function<int64_t()>& wall_ns_;
};

}  // namespace

std::unique_ptr<RankData> watched_data(std::unique_ptr<RankData> data, const std::vector<BatchWatch*>& watches,
                                       const std::function<int64_t()>& wall_ns) {
  return std::make_unique<WatchedData>(std::move(data), watches, wall_ns);
}

}  // namespace ranklab
