// Which tokens of the training data a forward is working on, for what draws a number for each (stochastic rounding) and
// for what is noted of a step once. Set for the duration of a stage's forward; backward keeps the forward's. Thread
// rule: per thread; two forwards that take turns on one thread each have their own (interleave.h).
#pragma once
#include <cstdint>

namespace ranklab {

struct TokenPlace {
  int64_t step = 0;
  int64_t first_sample = 0;  // of the microbatch in the global batch of the step
  int64_t seq_length = 0;    // the model's longest sequence: the stride between samples
  bool trains = false;       // not validation, not generation
};

TokenPlace token_place();
void set_token_place(const TokenPlace& place);

class TokenPlaceScope {
 public:
  explicit TokenPlaceScope(const TokenPlace& place) : previous_(token_place()) { set_token_place(place); }
  ~TokenPlaceScope() { set_token_place(previous_); }
  TokenPlaceScope(const TokenPlaceScope&) = delete;
  TokenPlaceScope& operator=(const TokenPlaceScope&) = delete;

 private:
  TokenPlace previous_;
};

}  // namespace ranklab
