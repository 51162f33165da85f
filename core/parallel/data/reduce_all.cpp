// Every rank gets the whole sum and updates all parameters (PyTorch DDP: Li et al. 2020, arXiv 2006.15704). Cost: an
// all_reduce, 2(n-1)/n of the bytes; nothing in a group of one.
#include <utility>

#include "core/parallel/data/reduction.h"

namespace ranklab {
namespace {

class ReduceAll : public Reduction {
 public:
  explicit ReduceAll(Communicator& group) : group_(group) {}
  void start(FlatBucket& bucket) override {
    if (group_.size() > 1) work_ = group_.all_reduce_async(bucket.flat);
  }
  at::Tensor collect(FlatBucket& bucket) override {
    return work_ ? std::exchange(work_, nullptr)->wait() : bucket.flat;
  }

 private:
  Communicator& group_;
  WorkPtr work_;
};

}  // namespace

std::unique_ptr<Reduction> make_reduce_all(const ReductionSpec& spec) {
  return std::make_unique<ReduceAll>(spec.group);
}

}  // namespace ranklab
