#include "lessons/14_find_the_wrong_reduction/wrong_step.h"

#include <algorithm>
#include <optional>

#include "backends/cpu_sim/thread_world.h"
#include "core/config/one_rank.h"
#include "core/parity/microscope.h"
#include "core/sim/aten.h"

namespace ranklab::lesson {
namespace {

constexpr const char* kNorm = "final_norm.weight";

TrainConfig config_of(const std::string& bug, ParallelDims dims) {
  TrainConfig c;
  dims.world = dims.tp * std::max(dims.dp, 1);
  c.parallel = dims;
  c.parallel.dp = 0;
  c.model.num_layers = 2;
  c.model.hidden_size = 32;
  c.model.ffn_hidden_size = 64;
  c.model.num_attention_heads = 4;
  c.model.seq_length = 16;
  c.model.vocab_size = 256;
  c.global_batch_size = 8;
  c.micro_batch_size = 2;
  c.mock_data = true;
  c.clip_grad = 0;
  c.inject = bug;
  return c;
}

// RETURNS: nothing if the piece does not contain the element.
std::optional<double> element(const TensorPiece& piece, int64_t place) {
  const at::Tensor found = piece.slice.index().eq(place).nonzero();
  if (found.numel() == 0) return {};
  return piece.value[found.flatten()[0].item<int64_t>()].item<double>();
}

}  // namespace

WrongStep wrong_step(const std::string& bug, ParallelDims dims) {
  const TrainConfig config = config_of(bug, dims);
  const auto world = [](const RunPlan& plan) { return make_thread_world({.size = plan.mesh.world_size()}); };
  const Microscope scope(on_one_rank(config), world, {.steps = 1, .narrow = false});
  const ParityRecord got = record_run(config, world, {.steps = 1});
  const ParityComparison all = compare(got, scope.reference());
  WrongStep step;
  step.first = all.verdicts.size();
  for (const TensorVerdict& one : all.verdicts) {
    if (one.wrong() && step.first == all.verdicts.size()) step.first = step.tensors.size();
    step.tensors.push_back({one.key.text(), one.worst.eps, one.tolerance});
  }
  const TensorVerdict* wrong = all.first_wrong();
  const TensorKey key = wrong != nullptr ? wrong->key : TensorKey{0, ParityPhase::kBackward, kNorm, "grad"};
  const int64_t place = wrong != nullptr ? wrong->worst.place : 0;
  for (const TensorPiece& piece : got.tensors.at(key)) {
    const auto& own = got.local_grads.at(key);
    const auto mine = std::ranges::find(own, piece.rank, &TensorPiece::rank);
    const std::optional<double> there = element(piece, place);
    if (!there || mine == own.end()) continue;
    step.ranks.push_back({.tp = got.mesh.coordinate(Axis::kTp, piece.rank),
                          .dp = got.mesh.coordinate(Axis::kDp, piece.rank),
                          .own = element(*mine, place).value_or(0),
                          .there = *there});
  }
  step.right = scope.reference().whole(key).values[place].item<double>();
  const TensorKey loss{0, ParityPhase::kLoss, "head", "loss"};
  step.loss = got.tensors.at(loss).front().value.item<double>();
  step.loss_of_one = scope.reference().whole(loss).values.item<double>();
  return step;
}

}  // namespace ranklab::lesson
