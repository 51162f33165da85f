// Meta kernels (output shapes) for operators of a training step for which LibTorch without Python has none. Strides are
// those of the CPU kernels, because other strides would be charged as a copy that no real run makes. An unknown value
// reads as one, and only on the thread of a meta rank; on other threads reading one is still an error. Thread rule: any
// thread.
#pragma once

namespace ranklab::meta {

// Idempotent; affects the whole process.
void install_kernels();

// While alive, this thread may read values of tensors that have none.
class UnknownNumbers {
 public:
  UnknownNumbers();
  ~UnknownNumbers();
  UnknownNumbers(const UnknownNumbers&) = delete;
  UnknownNumbers& operator=(const UnknownNumbers&) = delete;

 private:
  bool previous_;
};

}  // namespace ranklab::meta
