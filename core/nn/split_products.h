// Matrix products whose contraction is cut into two halves that are multiplied one by one and then added: the same sum
// in another order, as two ranks that share a matrix take it. Parity derives from it how far rounding moves a tensor.
// Cost: otherwise the reading of a word of the thread. Thread rule: of the thread, since
// ranks are threads; a backward that autograd runs on a thread of its own, as on a GPU, is not split.
#pragma once

namespace ranklab {

// Read by gemm.h's products.
extern thread_local constinit bool products_are_split;

// While alive, products of this thread are split, or not; afterwards as before.
class SplitProducts {
 public:
  explicit SplitProducts(bool split = true) : before_(products_are_split) { products_are_split = split; }
  ~SplitProducts() { products_are_split = before_; }
  SplitProducts(const SplitProducts&) = delete;
  SplitProducts& operator=(const SplitProducts&) = delete;

 private:
  bool before_;
};

}  // namespace ranklab
