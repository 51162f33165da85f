// Counts what happens to a rank's buckets and units in a step. Thread rule: its rank's thread.
#pragma once
#include <map>
#include <string>

#include "core/parallel/data/grad_bucket.h"
#include "core/runtime/hooks.h"
#include "core/trace/zero_event.h"

namespace ranklab {

class ZeroCounter {
 public:
  void clear() { counters_ = {}; }
  void add(const GradBucket& bucket);  // call once, before the bucket is noted
  // `label`: of a bucket, or of a unit, which consists of several buckets (core/trace/zero_event.h).
  void note(ZeroState state, const std::string& label);
  bool empty() const { return sizes_.empty(); }
  const ZeroCounters& counters() const { return counters_; }

 private:
  struct Bytes {
    int64_t gradients = 0, parameters = 0;
    bool sharded = false;
  };
  std::map<std::string, Bytes> sizes_;         // by label
  std::map<std::string, int64_t> unit_bytes_;  // bytes of the parameters that are gathered for the unit
  ZeroCounters counters_;
};

}  // namespace ranklab
