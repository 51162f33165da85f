// Data whose training batches are shown to observers, together with the time that loading took. Thread rule: its rank's
// thread.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/runtime/components.h"

namespace ranklab {

class BatchWatch {
 public:
  virtual ~BatchWatch() = default;
  virtual void loaded(const Batch& batch, int64_t wait_ns) = 0;
};

// `watches` is read at each batch; it and the clock must outlive the data.
std::unique_ptr<RankData> watched_data(std::unique_ptr<RankData> data, const std::vector<BatchWatch*>& watches,
                                       const std::function<int64_t()>& wall_ns);

}  // namespace ranklab
