// Describes a flat gradient bucket of a rank: what is reduced or sharded over which group. The reducer must outlive it.
// Thread rule: plain data.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/nn/matrix_parts.h"
#include "core/nn/parameter.h"
#include "core/parallel/data/bucket_layout.h"

namespace ranklab {

struct GradBucket {
  std::string label;      // as in core/trace/zero_event.h
  Axis axis = Axis::kDp;  // the axis of the group that reduces it
  int shards = 1;         // number of members that each update a shard; 1: each member updates the whole bucket
  BucketLayout layout;    // element_bytes is that of a gradient
  std::span<Parameter* const> parameters;  // the layout's items, shared by all buckets of the reducer
  std::vector<MatrixWork> work = {};       // work of each member, for whole matrices (MatrixExchange::work())

  int64_t parameter_bytes() const {  // per element
    return static_cast<int64_t>(parameters[layout.places[0].item]->data.itemsize());
  }
};

}  // namespace ranklab
