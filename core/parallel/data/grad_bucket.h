// A flat gradient bucket of a rank, for whoever asks what is reduced, or sharded, where. Thread rule: plain data.
#pragma once
#include <vector>

#include "core/base/vocabulary.h"
#include "core/nn/parameter.h"
#include "core/parallel/data/bucket_layout.h"

namespace ranklab {

struct GradBucket {
  Axis axis = Axis::kDp;  // whose group reduces it
  int shards = 1;         // members that each update a part; 1: each updates all
  BucketLayout layout;
  std::vector<const Parameter*> parameters;  // the layout's items
};

}  // namespace ranklab
