#include "core/base/error.h"

#include <utility>

namespace ranklab {
namespace {

std::string format(const ErrorText& t) {
  std::string out;
  if (!t.where.empty()) out += "[" + t.where + "] ";
  out += t.what;
  if (!t.got.empty()) out += "; got " + t.got;
  if (!t.want.empty()) out += "; want " + t.want;
  if (!t.fix.empty()) out += "; do: " + t.fix;
  return out;
}

}  // namespace

Error::Error(ErrorKind kind, ErrorText text) : std::runtime_error(format(text)), kind_(kind), text_(std::move(text)) {}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return 2;
    case ErrorKind::kEnvironment:
      return 3;
    case ErrorKind::kCheckFailed:
      return 4;
    case ErrorKind::kCommunication:
      return 5;
    case ErrorKind::kTimeout:
      return 6;
    case ErrorKind::kNumeric:
      return 7;
    case ErrorKind::kBadFile:
      return 8;
    case ErrorKind::kOutputLost:
      return 9;
    case ErrorKind::kSentinel:
      return 10;
    case ErrorKind::kInterrupted:
      return 130;
    case ErrorKind::kIo:
    case ErrorKind::kInternal:
      return 1;
  }
  return 1;
}

}  // namespace ranklab
