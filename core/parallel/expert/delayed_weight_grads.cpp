#include "core/parallel/expert/delayed_weight_grads.h"

namespace ranklab {

// Backward reaches the outputs first.
void DelayedWeightGrads::delay_between(const at::Tensor& rows_NH, const at::Tensor& outputs_NH) {
  outputs_NH.register_hook([self = shared_from_this()](const at::Tensor&) {
    if (deferred_weight_grads() == nullptr) self->defer_.emplace(self->queue_);
  });
  rows_NH.register_hook([self = shared_from_this()](const at::Tensor&) { self->defer_.reset(); });
}

}  // namespace ranklab
