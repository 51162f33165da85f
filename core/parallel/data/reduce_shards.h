// Every rank gets the sum of its shard alone and updates that; the others' updates come by gathering (ZeRO, Rajbhandari
// et al. 2020, arXiv 1910.02054). The bits are those of the all_reduce. Cost: a reduce_scatter and an all_gather, each
// (n-1)/n of the bytes. Memory: where the stage shards gradients, the bucket goes when it is reduced. Thread rule: as
// reduction.h.
#pragma once
#include "core/parallel/data/reduction.h"

namespace ranklab {

class ReduceShards : public Reduction {
 public:
  explicit ReduceShards(const ReductionSpec& spec)
      : zero_(spec.zero), group_(spec.group), shard_(spec.layout, spec.parameters, spec.group) {}
  void start(FlatBucket& bucket) override;
  bool collect(FlatBucket& bucket) override;
  BucketShard* shard() override { return &shard_; }
  void updated() override;

 protected:
  // The shard's sum over the group is here. False: it goes on from here, in place.
  virtual bool summed(const at::Tensor& /*shard*/) { return true; }

 private:
  ZeroStage zero_;
  Communicator& group_;
  BucketShard shard_;
  WorkPtr work_;
};

}  // namespace ranklab
