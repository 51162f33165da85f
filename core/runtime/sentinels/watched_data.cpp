#include "core/runtime/sentinels/watched_data.h"

#include <utility>

#include "core/runtime/wrapped_data.h"

namespace ranklab {
namespace {

class WatchedData final : public WrappedData {
 public:
  WatchedData(std::unique_ptr<RankData> data, const std::vector<BatchWatch*>& watches,
              const std::function<int64_t()>& wall_ns)
      : WrappedData(std::move(data)), watches_(watches), wall_ns_(wall_ns) {}

  Batch train_batch(int64_t step, int64_t microbatch) override {
    const int64_t begin_ns = wall_ns_();
    Batch batch = inner().train_batch(step, microbatch);
    const int64_t wait_ns = wall_ns_() - begin_ns;
    for (BatchWatch* watch : watches_) watch->loaded(batch, wait_ns);
    return batch;
  }

 private:
  const std::vector<BatchWatch*>& watches_;
  const std::function<int64_t()>& wall_ns_;
};

}  // namespace

std::unique_ptr<RankData> watched_data(std::unique_ptr<RankData> data, const std::vector<BatchWatch*>& watches,
                                       const std::function<int64_t()>& wall_ns) {
  return std::make_unique<WatchedData>(std::move(data), watches, wall_ns);
}

}  // namespace ranklab
