// The purpose of the collectives that this thread posts inside a scope; events record it (Event::purpose). Thread rule:
// per thread.
#pragma once
#include <utility>

#include "core/base/vocabulary.h"

namespace ranklab {

inline Purpose& thread_purpose() {
  thread_local Purpose purpose = Purpose::kOther;
  return purpose;
}

class PurposeScope {
 public:
  explicit PurposeScope(Purpose purpose) : previous_(std::exchange(thread_purpose(), purpose)) {}
  ~PurposeScope() { thread_purpose() = previous_; }
  PurposeScope(const PurposeScope&) = delete;
  PurposeScope& operator=(const PurposeScope&) = delete;

 private:
  Purpose previous_;
};

}  // namespace ranklab
