// The one exception type. Its text always reads `[where] what; got; want; do`, so a user sees what, where, and what to
// do next. Libraries throw; only main() prints and turns the kind into an exit code.
// Thread rule: immutable after construction.
#pragma once
#include <stdexcept>
#include <string>

namespace ranklab {

enum class ErrorKind {
  kInvalidArgument,  // usage or configuration, found before any rank starts
  kEnvironment,      // something is missing on this machine (GPU, NCCL, library)
  kCheckFailed,      // a verification did not hold
  kCommunication,    // mismatched collective, deadlock, or a rank that failed
  kTimeout,          // a wait exceeded its limit
  kNumeric,          // NaN, Inf, or a bound that was exceeded
  kIo,               // an input is missing, may not be read or is too large, or the system refused a write
  kBadFile,          // a file's content is not what its format says
  kOutputLost,       // everything was computed, but a log, a trace or printed text could not be written completely
  kSentinel,         // a number of a training run left the bounds at which the run ends
  kInterrupted,      // SIGINT
  kInternal,         // a bug in ranklab
};

// Process exit code of a kind (docs/reliability.md): 2 usage, 3 environment, 4 check, 5 rank failure or mismatch, 6
// hang, 7 numeric, 8 bad file, 9 output lost, 10 stopped by a sentinel, 130 interrupted, else 1.
int exit_code(ErrorKind kind);

struct ErrorText {
  std::string where = {};  // module and location, with rank / axis / step when they exist
  std::string what = {};   // what went wrong, one clause
  std::string got = {};
  std::string want = {};
  std::string fix = {};  // what the user can do, printed after "do:"
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, ErrorText text);
  ErrorKind kind() const { return kind_; }
  const ErrorText& text() const { return text_; }

 private:
  ErrorKind kind_;
  ErrorText text_;
};

}  // namespace ranklab

// RANKLAB_CHECK(n > 0, ErrorKind::kInvalidArgument, .where = "mesh", .what = "...", .got = ..., .want = ..., .fix =
// ...);
#define RANKLAB_CHECK(condition, kind, ...)                                              \
  do {                                                                                   \
    if (!(condition)) throw ::ranklab::Error((kind), ::ranklab::ErrorText{__VA_ARGS__}); \
  } while (false)
