// Lesson 7, solution. 2 + 2 + 12 bytes per parameter, and a sum over what backward needs.
#include "exercise.h"

using namespace ranklab::lesson;

extern "C" int64_t parameters(const Model& model) {
  const int64_t h = model.hidden;
  const int64_t layer = 2 * h + 3 * h * h + h * h + 2 * model.ffn * h + h * model.ffn;
  return model.layers * layer + 2 * model.vocab * h + h;
}

extern "C" int64_t state_bytes(const Model& model, State state) {
  const int64_t master_and_moments = 3 * kFp32;
  return parameters(model) * (state == State::kOptimizer ? master_and_moments : kBf16);
}

extern "C" int64_t layer_bytes(const Model& model, int64_t tokens) {
  const int64_t norms = 2 * (model.hidden * kBf16 + kFp32);
  const int64_t attention = (3 + 1) * model.hidden * kBf16 + model.heads * kFp32;
  const int64_t mlp = 2 * model.ffn * kBf16;
  return tokens * (norms + attention + mlp);
}
