// The actions of a pipeline rank. Letters as in the zero-bubble paper (Qi et al., arXiv 2401.10241): F forward, B
// gradient of the input, W gradient of the weights, BW both at once. torch's pipelining and DeepSeek write "B" for BW;
// the dialect of a file tells which is meant (csv.h). F&BW is an overlapped pair: the forward of one microbatch and the
// full backward of another that share the GPU (DualPipe, arXiv 2412.19437). Torch-free. Thread rule: plain data.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace ranklab {

enum class ActionKind : uint8_t { kF, kB, kW, kBW, kFBW };

struct Action {
  ActionKind kind = ActionKind::kF;
  int stage = 0;
  int microbatch = 0;
  // The backward half of kFBW; stage and microbatch above are its forward half.
  int back_stage = -1;
  int back_microbatch = -1;

  bool operator==(const Action&) const = default;
  bool has_forward() const { return kind == ActionKind::kF || kind == ActionKind::kFBW; }
  bool has_input_grad() const { return kind != ActionKind::kF && kind != ActionKind::kW; }
  bool has_weight_grad() const { return kind != ActionKind::kF && kind != ActionKind::kB; }
  int backward_stage() const { return kind == ActionKind::kFBW ? back_stage : stage; }
  int backward_microbatch() const { return kind == ActionKind::kFBW ? back_microbatch : microbatch; }
};

inline Action forward(int stage, int microbatch) { return {ActionKind::kF, stage, microbatch}; }
inline Action input_grad(int stage, int microbatch) { return {ActionKind::kB, stage, microbatch}; }
inline Action weight_grad(int stage, int microbatch) { return {ActionKind::kW, stage, microbatch}; }
inline Action backward(int stage, int microbatch) { return {ActionKind::kBW, stage, microbatch}; }
inline Action pair(int stage, int microbatch, int back_stage, int back_microbatch) {
  return {ActionKind::kFBW, stage, microbatch, back_stage, back_microbatch};
}

// "F", "B", "W", "BW", "F&BW"
constexpr const char* letters(ActionKind kind) {
  constexpr std::array kLetters = {"F", "B", "W", "BW", "F&BW"};
  return kLetters[static_cast<size_t>(kind)];
}
// "2F7": stage 2, microbatch 7; a pair is "2F7&5BW3"
std::string to_text(const Action& action);

}  // namespace ranklab
