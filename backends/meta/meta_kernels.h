// Meta kernels (output shapes) for operators of a training step that lack one in LibTorch without Python. Strides are
// those of the CPU kernels: another stride would be charged as a copy that no run makes. An unknown value reads as one,
// and only on the thread of a meta rank: elsewhere reading one stays an error. Thread rule: any thread.
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
