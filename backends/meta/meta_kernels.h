// Shapes of the operators of a training step that LibTorch without Python has no meta kernels for, laid out as its CPU
// kernels lay them out: another stride would be charged as a copy that no run makes. A number that nobody knows is one,
// and only on the thread of a rank of shapes: elsewhere reading one stays an error. Thread rule: any thread.
#pragma once

namespace ranklab::meta {

// Idempotent; for the whole process.
void install_kernels();

// While alive, this thread may read numbers of tensors that have none.
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
