// What a stepper may query about a rank's own objects, as plain numbers: its tensors and its memory. The runtime
// creates one per rank (core/runtime/observe/rank_probe.h). Thread rule: memory_bytes() from the rank's thread; the
// rest from any thread while the world is paused.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/vocabulary.h"

namespace ranklab {

struct TensorSummary {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;         // of the local part
  std::vector<int64_t> global_shape;  // of the whole tensor
  bool defined = false;               // false: a gradient that does not exist yet; the rest is then empty
  double min = 0, max = 0, mean = 0, norm = 0;
  int64_t not_finite = 0;     // elements that are NaN or infinite, which the four numbers above exclude
  std::vector<double> first;  // the first elements, at most eight
  std::string types = {};  // type over the mesh, in a step whose types are followed: "partial over tp, varying over dp"
};

class RankProbe {
 public:
  virtual ~RankProbe() = default;
  virtual int64_t memory_bytes(MemoryCategory category) const = 0;
  virtual std::vector<std::string> tensor_names() const = 0;  // of parameters, in creation order
  // A parameter, or its gradient as NAME.grad. Throws kInvalidArgument suggesting the nearest name.
  virtual TensorSummary tensor(const std::string& name) const = 0;
  virtual uint64_t weights_hash() const = 0;  // of all parameters' bytes
};

}  // namespace ranklab
