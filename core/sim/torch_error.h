// The message of an exception; for LibTorch's errors without the stack trace, which does not help a user. Thread rule:
// pure.
#pragma once
#include <c10/util/Exception.h>

#include <exception>
#include <string>

namespace ranklab {

inline std::string message_of(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
}

}  // namespace ranklab
