// Whole tensors of a model by name, wherever they are stored: in a folder of safetensors files, in the shards of a
// checkpoint, or in another source whose names are mapped. One tensor is held in memory at a time (for checkpoints only
// a block of it, if that is enough), so a model may be larger than memory. Thread rule: one thread.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/safetensors.h"

namespace ranklab {

struct TensorInfo {
  std::string name = {};
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape = {};

  std::string describe() const { return std::string(ranklab::name(type)) + " " + shape_text(shape); }
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::vector<TensorInfo>& tensors() const = 0;              // sorted by name, without duplicates
  virtual std::vector<std::byte> read(const std::string& name) const = 0;  // row-major; throws kBadFile, kIo
  // The elements at one index of the first dimension.
  virtual std::vector<std::byte> read_slice(const std::string& name, int64_t index) const;
  // The same bytes in blocks of whole elements, in order.
  virtual void read_blocks(const std::string& name,
                           const std::function<void(std::span<const std::byte>)>& visit) const {
    visit(read(name));
  }
  virtual std::string where() const = 0;  // for messages: a path

  const TensorInfo* find(const std::string& name) const;    // null when there is none
  const TensorInfo& tensor(const std::string& name) const;  // throws kBadFile
};

// A checkpoint's tensors, by their names in the manifest ("weight/NAME", "exp_avg/NAME", ...).
class CheckpointTensors : public TensorSource {
 public:
  explicit CheckpointTensors(const Checkpoint& checkpoint);  // which must outlive this
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  std::vector<std::byte> read(const std::string& name) const override { return checkpoint_.read(name); }
  void read_blocks(const std::string& name,
                   const std::function<void(std::span<const std::byte>)>& visit) const override;
  std::string where() const override { return checkpoint_.folder(); }

 private:
  const Checkpoint& checkpoint_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace ranklab
