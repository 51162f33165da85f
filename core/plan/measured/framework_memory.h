// The GPU memory that a framework needs to run a recorded step, part by part: the tensors that a run of this project
// has, what the plan's software (`--software`) keeps in addition as activations and at the loss, the reserve of
// PyTorch's caching allocator, and the context of CUDA and NCCL, which no allocator counts. Buffers in which simulated
// ranks reduce are left out, because NCCL reduces in place. Thread rule: pure. Torch-free.
#pragma once
#include <algorithm>
#include <array>
#include <utility>

#include "core/config/train_config.h"
#include "core/plan/step_record.h"

namespace ranklab {

// CUDA, its loaded kernels and NCCL's buffers on a GPU: 0.5 GB for the first two, and about 0.7 GB for NCCL's channels.
constexpr double kContextBytes = 1.2e9;

struct FrameworkMemory {
  double states = 0;       // parameters, optimizer states, and accumulated gradients
  double activations = 0;  // at their peak, including gathered layers
  double loss = 0;         // logits in fp32, their softmax and gradients
  double workspace = 0;    // scratch memory of cuBLAS and of the software
  double reserve = 0;
  double context = 0;
  // What the software holds from the optimizer of one step until the next step begins to allocate.
  double between_steps = 0;

  // Names and bytes of the parts, which add up to on_device().
  std::array<std::pair<const char*, double>, 7> parts() const {
    return {{{"states", states},
             {"activations", activations},
             {"loss", loss},
             {"held between", std::max(0.0, between_steps - activations - loss)},
             {"workspace", workspace},
             {"reserve", reserve},
             {"context", context}}};
  }

  // Tensors after a step.
  double at_rest() const { return states + workspace + between_steps; }
  // The peak of tensors: torch.cuda.max_memory_allocated().
  double allocated() const { return states + workspace + std::max(activations + loss, between_steps); }
  // torch.cuda.max_memory_reserved().
  double reserved() const { return allocated() + reserve; }
  // As shown by nvidia-smi.
  double on_device() const { return reserved() + context; }
};

FrameworkMemory framework_memory(const RunPlan& plan, const RankRecord& rank);
// The memory of the pipeline rank that needs the most.
FrameworkMemory framework_memory(const RunPlan& plan, const StepRecord& record);

}  // namespace ranklab
