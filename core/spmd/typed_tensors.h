// The types of a rank's tensors, by tensor and by storage: a view has its base's type unless it was given its own, and
// what a view receives is its base's, too. Entries of tensors that are gone are never found. Cost: a look-up each.
// Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <unordered_map>

#include "core/spmd/tensor_type.h"

namespace ranklab {

class TypedTensors {
 public:
  struct Known {
    TensorType type;
    const std::string* parameter = nullptr;  // whose gradient it is
  };

  std::optional<Known> find(const at::Tensor& tensor) const;
  // `whole`: also of its storage, which nobody else has a type of.
  void set(const at::Tensor& tensor, const Known& known, bool whole);
  void forget(const at::Tensor& tensor);
  // Drops what is gone.
  void sweep();

 private:
  template <typename Impl>
  struct Entry {
    c10::weak_intrusive_ptr<Impl> alive;  // keeps the address from being used again
    Known known;
  };
  std::unordered_map<const at::TensorImpl*, Entry<at::TensorImpl>> tensors_;
  std::unordered_map<const c10::StorageImpl*, Entry<c10::StorageImpl>> storages_;
  size_t next_sweep_ = size_t{1} << 14;
};

}  // namespace ranklab
