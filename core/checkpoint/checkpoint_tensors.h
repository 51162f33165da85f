// A checkpoint's tensors as a TensorSource: whole, by their names in the manifest ("weight/NAME", "exp_avg/NAME", ...).
// Thread rule: one thread.
#pragma once
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

class CheckpointTensors : public TensorSource {
 public:
  explicit CheckpointTensors(const Checkpoint& checkpoint);  // which outlives this
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  std::vector<std::byte> read(const std::string& name) const override { return checkpoint_.read(name); }
  std::string where() const override { return checkpoint_.folder(); }

 private:
  const Checkpoint& checkpoint_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace ranklab
