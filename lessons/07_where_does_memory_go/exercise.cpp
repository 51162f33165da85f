// Lesson 7, exercise: say where memory goes before anything runs.
//
//   x --+--> norm --> qkv --> attention --> out --+--> norm --> gate_up --> silu x up --> down --+--> ...
//       +-----------------------------------------+------------------------------------------+
//
// The weights of a layer (h hidden, f units of the MLP):
//
//   two norms  [h] each      qkv [3 h x h]      out [h x h]      gate_up [2 f x h]      down [h x f]
//
// and of the model: an embedding [V x h], a last norm [h], a head [V x h].
//
// Each weight and each gradient is a bf16. AdamW keeps an fp32 copy of every weight and two fp32 moments.
//
// What a layer keeps for its backward, per token:
//
//   of each of its two norms   its input, the residual stream: h values, and the scale of its normalization: one fp32
//   of attention               q, k and v; its output; for each head one fp32, the logsumexp
//   of the MLP                 the output of gate_up
//
// Nothing else: the norms' outputs and the product of silu(gate) and up are recomputed from these. Everything is bf16
// unless stated otherwise.
//
// Check with:  ./ranklab lesson check 7
#include "exercise.h"

using namespace ranklab::lesson;

// ---- your turn: all three functions ----

extern "C" int64_t parameters([[maybe_unused]] const Model& model) { return 0; }

extern "C" int64_t state_bytes([[maybe_unused]] const Model& model, [[maybe_unused]] State state) { return 0; }

extern "C" int64_t layer_bytes([[maybe_unused]] const Model& model, [[maybe_unused]] int64_t tokens) { return 0; }

// ---- end of your turn ----
