// Tensors of a model assembled from what ranks hold of them: shards of a partition, and runs of elements of these
// shards (pieces of ZeRO). Elements that several ranks hold must have the same bits on all of them, padding must be
// zero, and nothing may be missing; each violation is a fault. Thread rule: any thread may put; take when the ranks
// have ended.
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/parameter.h"

namespace ranklab {

using StepTensor = std::pair<int64_t, std::string>;  // step, global name
using StepTensors = std::map<StepTensor, at::Tensor>;

class GatheredTensors {
 public:
  // `what`: a name for the faults, such as "gradient".
  explicit GatheredTensors(std::string what) : what_(std::move(what)) {}
  // Elements [begin, begin + flat.numel()) of the rank's part of the parameter, row-major, from any device.
  void put(int64_t step, const Parameter& parameter, int64_t begin, const at::Tensor& flat);
  StepTensors take();
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  struct Whole {
    at::Tensor tensor;
    std::vector<bool> known;  // per element, row-major
    bool put(int64_t first, const at::Tensor& values, int64_t begin, int64_t count);
  };
  void fault(const std::string& text, const StepTensor& key);

  std::string what_;
  std::mutex mutex_;
  std::map<StepTensor, Whole> tensors_;
  std::vector<std::string> faults_;
};

}  // namespace ranklab
