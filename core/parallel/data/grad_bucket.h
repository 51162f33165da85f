// A flat gradient bucket of a rank, for whoever asks what is reduced, or sharded, where. Outlived by its reducer.
// Thread rule: plain data.
#pragma once
#include <span>
#include <string>

#include "core/base/vocabulary.h"
#include "core/nn/parameter.h"
#include "core/parallel/data/bucket_layout.h"

namespace ranklab {

struct GradBucket {
  std::string label;                       // as in core/trace/zero_event.h
  Axis axis = Axis::kDp;                   // whose group reduces it
  int shards = 1;                          // members that each update a part; 1: each updates all
  BucketLayout layout;                     // element_bytes: of a gradient
  std::span<Parameter* const> parameters;  // the layout's items, and those of all other buckets of the reducer

  int64_t parameter_bytes() const {  // of an element
    return static_cast<int64_t>(parameters[layout.places[0].item]->data.itemsize());
  }
};

}  // namespace ranklab
