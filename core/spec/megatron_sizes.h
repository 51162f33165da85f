// Sizes that Megatron-LM derives from others (megatron/training/arguments.py, megatron/training/tokenizer), for what
// reads its command lines and its published runs. Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace ranklab {

inline constexpr int64_t kGpt2Tokens = 50257;

// The MLP's width where none is given: 4 times the hidden size; gated two thirds of that, in whole 64s.
double megatron_ffn(double hidden, bool gated);

// A vocabulary with rows added up to a multiple of `divisor` for each tp rank. REQUIRES: divisor, tp above 0.
int64_t megatron_vocabulary(int64_t tokens, int64_t tp, int64_t divisor = 128);

// Layers of each of `pp` stages, where the first, the last or both have a number of their own and the others share the
// rest evenly, one each at least; nothing where they cannot.
std::optional<std::vector<int64_t>> megatron_stage_layers(int64_t layers, int64_t pp, std::optional<int64_t> first,
                                                          std::optional<int64_t> last);

}  // namespace ranklab
