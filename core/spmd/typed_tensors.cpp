#include "core/spmd/typed_tensors.h"

#include <algorithm>

namespace ranklab {
namespace {

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

template <typename Map, typename Key>
auto alive_in(Map& map, const Key* key) -> decltype(&map.begin()->second) {
  const auto found = map.find(key);
  return found != map.end() && !found->second.alive.expired() ? &found->second : nullptr;
}

}  // namespace

std::optional<TypedTensors::Known> TypedTensors::find(const at::Tensor& tensor) const {
  if (const auto* own = alive_in(tensors_, tensor.unsafeGetTensorImpl())) return own->known;
  if (const auto* base = alive_in(storages_, storage_of(tensor))) return base->known;
  return std::nullopt;
}

void TypedTensors::set(const at::Tensor& tensor, const Known& known, bool whole) {
  if (tensors_.size() + storages_.size() > next_sweep_) sweep();
  tensors_.insert_or_assign(
      tensor.unsafeGetTensorImpl(),
      Entry<at::TensorImpl>{c10::weak_intrusive_ptr<at::TensorImpl>(tensor.getIntrusivePtr()), known});
  const c10::StorageImpl* storage = storage_of(tensor);
  if (storage == nullptr || !whole) return;
  storages_.insert_or_assign(storage, Entry<c10::StorageImpl>{tensor.storage().getWeakStorageImpl(), known});
}

void TypedTensors::forget(const at::Tensor& tensor) {
  tensors_.erase(tensor.unsafeGetTensorImpl());
  storages_.erase(storage_of(tensor));
}

void TypedTensors::sweep() {
  const auto gone = [](const auto& entry) { return entry.second.alive.expired(); };
  std::erase_if(tensors_, gone);
  std::erase_if(storages_, gone);
  next_sweep_ = std::max(next_sweep_, 2 * (tensors_.size() + storages_.size()));
}

}  // namespace ranklab
