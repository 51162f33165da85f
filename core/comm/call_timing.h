// On a GPU wait() holds the caller's stream, not the host: when the call begins and ends is known only later. A work of
// such a backend hands out what will know it, which keeps none of the call's tensors. Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/comm/call.h"

namespace ranklab {

class CallTiming {
 public:
  virtual ~CallTiming() = default;
  virtual bool known() const = 0;            // throws when the call will never end
  virtual CallTimes call_times() const = 0;  // REQUIRES: known()
};

class OffersTiming {
 public:
  virtual ~OffersTiming() = default;
  virtual std::shared_ptr<const CallTiming> timing() const = 0;
};

}  // namespace ranklab
