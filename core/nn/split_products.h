// Matrix products whose contraction dimension is split into two halves, which are multiplied separately and then added:
// the same sum in another order, as two ranks that share a matrix would compute it. Parity checks use it to estimate
// how far rounding moves a tensor. Cost: when off, reading one thread-local word. Thread rule: applies to one thread,
// since ranks are threads; a backward that autograd runs on a thread of its own, as on a GPU, is not split.
#pragma once

namespace ranklab {

// Read by gemm.h's products.
extern thread_local constinit bool products_are_split;

// While this object is alive, products of this thread are split (or not); afterwards the previous setting is restored.
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
