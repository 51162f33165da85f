// Lesson 7: the memory of a model on one rank, computed from its configuration alone.
#pragma once
#include <cstdint>

namespace ranklab::lesson {

// A model as in the lesson's text: RMSNorm, RoPE, as many key and value heads as query heads, SwiGLU, no biases, an
// embedding and a separate head.
struct Model {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t ffn = 0;  // intermediate size of the MLP
  int64_t vocab = 0;
};

// Mixed precision with AdamW.
constexpr int64_t kBf16 = 2, kFp32 = 4;  // bytes

enum class State { kParameters, kGradients, kOptimizer };

}  // namespace ranklab::lesson

extern "C" {
// The number of parameters.
int64_t parameters(const ranklab::lesson::Model& model);
// The bytes of one kind of state.
int64_t state_bytes(const ranklab::lesson::Model& model, ranklab::lesson::State state);
// The bytes that one layer keeps from its forward to its backward, for a microbatch of `tokens` tokens.
int64_t layer_bytes(const ranklab::lesson::Model& model, int64_t tokens);
}
