// Training software whose kernels are not this project's (`--software`). With `--efficiency measured`, says how much
// longer than here its kernels and collectives take, and what memory it needs besides the tensors that a run of this
// project has. Fitted to published runs of that software, never to a single model or paper (docs/planner.md). Thread
// rule: plain data.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/sim/kernel_shape.h"

namespace ranklab {

struct SoftwareMemory {
  double activations = 1;  // activations kept from F to backward, relative to this project
  double selective = 1;    // the same with selective recomputation, which differs between software
  double experts = 1;      // the same for models with experts
  // Whether layers of hybrid models without experts keep what Megatron-Core's do (core/plan/measured/hybrid_memory.h).
  bool megatron_hybrids = false;
  // Bytes kept per score of unfused attention, besides this project's one copy: by software that always trained with
  // dropout, and by other software in runs with dropout.
  double score_bytes = 0, dropped_score_bytes = 0;
  double score_buffer_bytes = 0;  // per score of one layer, in a buffer that all layers share and that is never freed
  // Bytes per logit at the loss, besides 16-bit logits and their gradient: if a rank has the whole vocabulary, and if
  // tensor-parallel ranks share it.
  double logit_bytes = 0, shared_logit_bytes = 0;
  // memory that the allocator holds without a tensor, as a fraction of what is not held all the time
  double reserve = 0;
  std::optional<double> cublas_mib =
      {};                         // each workspace of cuBLAS (CUBLAS_WORKSPACE_CONFIG); unset: PyTorch's default
  double own_workspaces = 0;      // number of workspaces for products that PyTorch does not launch ...
  double grouped_workspaces = 0;  // ... and for the streams of experts' products
  double exchange_bytes = 0;      // buckets of gradients and of gathered weights; at most twice the parameters
  double gradient_copies = 0;     // copies of 16-bit gradients besides the fp32 ones, if a run has these
  double accumulator_bytes = 0;   // per parameter with 16-bit gradients, for accumulating them
  double shard_bytes = 0;         // per parameter that ZeRO 3 shards, besides 16-bit weights and AdamW's states
  double gathered = 1;            // weights of sharded layers that are gathered at once, relative to this project
  double fp32_gradients = 0;      // fp32 copies, for the optimizer, of gradients that are accumulated in 16 bits ...
  double stage_inputs = 0;  // ... and tensors as large as a stage's input, per stage; both exist only between steps
};

// What a run costs besides its kernels and collectives, for its software on its machine (set by software_terms.h).
struct SoftwareTerms {
  double launch_us = 0;             // host time per kernel: a GPU whose kernels are shorter waits for it ...
  bool launch_blocking = false;     // ... and always waits if each launch blocks until its kernel has ended
  double beside = 0;                // fraction of the time of hidden collectives by which compute takes longer
  double slowest = 0;               // by how much each doubling of the number of GPUs above 512 makes a step longer
  double tensor_collectives = 1;    // factor for tensor-parallel groups, in addition to Software::collectives
  double sharded_across_nodes = 1;  // factor for gathering and scattering shards between nodes
  double message_us = 0;            // per message between pipeline stages, besides its time on the links
  int message_parts = 1;  // parts of a message whose bytes all tensor-parallel ranks hold: each rank sends one part
  // If ranks share the optimizer's states, time after each step: microseconds per parameter and rank of the group; or,
  // with `owners`, who hold whole parameters, per owner's broadcast and rank.
  double piece_us = 0;
  bool owners = false;
};

struct Software {
  const char* name = "ranklab";
  const char* what = "this project's kernels: norms, rotation, activations and losses are fused";
  std::array<double, KernelShape::kKinds> kernels = {1, 1, 1, 1, 1, 1};  // indexed by KernelShape::Kind
  double collectives = 1;
  SoftwareMemory memory = {};
  SoftwareTerms terms = {};
};

std::span<const Software> software_rows();
// Throws kInvalidArgument with the nearest name.
const Software* find_software(const std::string& name);  // null: none has this name
const Software& software_named(const std::string& name);

}  // namespace ranklab
