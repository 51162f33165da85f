// The types of a rank's tensors, stored by tensor and by storage: a view has its base's type unless it was given its
// own, and a type that is given to a view also becomes its base's. Entries of freed tensors are never found. Cost: one
// look-up per call. Thread rule: its rank's thread.
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
    SpmdType type;
    const std::string* parameter = nullptr;  // the parameter whose gradient the tensor is, or null
  };

  std::optional<Known> find(const at::Tensor& tensor) const;
  // `whole`: also sets the type of the tensor's storage, which no other tensor has given a type.
  void set(const at::Tensor& tensor, const Known& known, bool whole);
  void forget(const at::Tensor& tensor);
  // Removes entries of freed tensors.
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
