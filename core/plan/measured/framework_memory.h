// What a framework takes of a GPU's memory to run a recorded step, each part on a line of its own: the tensors that a
// run of this project has, what the software of the plan (`--software`) keeps more of activations and at the loss, the
// reserve of PyTorch's caching allocator, and the context of CUDA and NCCL, which no allocator counts. Buffers in which
// simulated ranks reduce are left out: NCCL reduces in place. Thread rule: pure. Torch-free.
#pragma once
#include <algorithm>
#include <array>
#include <utility>

#include "core/config/train_config.h"
#include "core/plan/step_record.h"

namespace ranklab {

// CUDA, its loaded kernels and NCCL's buffers on a GPU: 0.5 GB for the first two and some 0.7 GB of channels.
constexpr double kContextBytes = 1.2e9;

struct FrameworkMemory {
  double states = 0;       // parameters, optimizer states, and gradients as they are added up
  double activations = 0;  // at their most, with gathered layers
  double loss = 0;         // logits in fp32, their softmax and gradients
  double workspace = 0;    // scratch of cuBLAS and of the software
  double reserve = 0;
  double context = 0;
  // What the software holds from one step's optimizer until the next step begins to take memory.
  double between_steps = 0;

  // Name and bytes of each; together on_device().
  std::array<std::pair<const char*, double>, 7> parts() const {
    return {{{"states", states},
             {"activations", activations},
             {"loss", loss},
             {"held between", std::max(0.0, between_steps - activations - loss)},
             {"workspace", workspace},
             {"reserve", reserve},
             {"context", context}}};
  }

  // After a step, of tensors.
  double at_rest() const { return states + workspace + between_steps; }
  // At most, of tensors: torch.cuda.max_memory_allocated().
  double allocated() const { return states + workspace + std::max(activations + loss, between_steps); }
  // torch.cuda.max_memory_reserved().
  double reserved() const { return allocated() + reserve; }
  // nvidia-smi.
  double on_device() const { return reserved() + context; }
};

FrameworkMemory framework_memory(const RunPlan& plan, const RankRecord& rank);
// Memory of the pipeline rank that takes most.
FrameworkMemory framework_memory(const RunPlan& plan, const StepRecord& record);

}  // namespace ranklab
