// On a GPU, wait() blocks the caller's stream and not the host, so a call's times become known only later. The Work of
// such a backend hands out an object that will know them and holds none of the call's tensors. Thread rule: its rank's
// thread.
#pragma once
#include <memory>

#include "core/comm/call.h"

namespace ranklab {

class CallTiming {
 public:
  virtual ~CallTiming() = default;
  virtual bool known() const = 0;            // throws if the call will never end
  virtual CallTimes call_times() const = 0;  // REQUIRES: known()
};

class OffersTiming {
 public:
  virtual ~OffersTiming() = default;
  virtual std::shared_ptr<const CallTiming> timing() const = 0;
};

}  // namespace ranklab
