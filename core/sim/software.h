// Training software whose kernels are not this project's (`--software`): with `--efficiency measured`, by how much
// longer than here its kernels and collectives take, and what it takes of memory besides the tensors that a run of this
// project has. Fitted to published runs of that software, none to a model or a paper (docs/planner.md). Thread rule:
// plain data.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/sim/kernel_shape.h"

namespace ranklab {

struct SoftwareMemory {
  double activations = 1;  // of what this project keeps of a microbatch from F to its backward
  double selective = 1;    // the same with selective recomputation, which differs from one software to another
  double experts = 1;      // the same where a model has experts
  // Kept of each of unfused attention's scores beside this project's one copy of them: by a software that always
  // trained with dropout, and by others where a run has dropout.
  double score_bytes = 0, dropped_score_bytes = 0;
  double score_buffer_bytes = 0;  // of each score of one layer, in a buffer that all layers share and nothing frees
  // At the loss, of each logit, beside 16-bit logits and their gradient: where a rank has the whole vocabulary, and
  // where tensor-parallel ranks share it.
  double logit_bytes = 0, shared_logit_bytes = 0;
  double reserve = 0;  // that the allocator holds and no tensor uses, of what is not held all the time
  std::optional<double> cublas_mib = {};  // of each workspace of cuBLAS (CUBLAS_WORKSPACE_CONFIG); or PyTorch's default
  double own_workspaces = 0;              // for products that PyTorch does not launch ...
  double grouped_workspaces = 0;          // ... and for the streams of experts' products
  double exchange_bytes = 0;              // buckets of gradients and gathered weights; at most twice the parameters
  double gradient_copies = 0;             // of 16-bit gradients beside those in fp32, where a run has these
  double accumulator_bytes = 0;           // of each parameter whose gradients are in 16 bits: where they are added up
  double shard_bytes = 0;     // of each parameter that ZeRO 3 shards, beside 16-bit weights and AdamW's states
  double gathered = 1;        // of the weights of sharded layers that this project has gathered at once
  double fp32_gradients = 0;  // copies, for the optimizer, of gradients that are added up in 16 bits ...
  double stage_inputs = 0;    // ... and tensors as large as a stage's input, of each stage: between steps alone
};

// What a run pays besides its kernels and collectives, by its software on its machine (software_terms.h sets them).
struct SoftwareTerms {
  double launch_us = 0;             // of the host for each kernel: a GPU whose kernels are shorter waits for it ...
  bool launch_blocking = false;     // ... and a GPU always does where each launch waits for its kernel
  double beside = 0;                // of the time that collectives take behind compute, by which compute takes longer
  double slowest = 0;               // by how much each doubling of the GPUs above 512 makes a step longer
  double tensor_collectives = 1;    // those of tensor-parallel groups, beside Software::collectives
  double sharded_across_nodes = 1;  // gathers and scatters of shards between nodes
  double message_us = 0;            // of each message between pipeline stages, besides its time on the links
  int message_parts = 1;            // of a message whose bytes all tensor-parallel ranks hold: each sends one
  // Where ranks share the optimizer's states, after each step: microseconds for each parameter and each rank of the
  // group; with `owners`, who have whole parameters, for each owner's broadcast and each rank.
  double piece_us = 0;
  bool owners = false;
};

struct Software {
  const char* name = "ranklab";
  const char* what = "this project's kernels: norms, rotation, activations and losses are fused";
  std::array<double, KernelShape::kKinds> kernels = {1, 1, 1, 1, 1, 1};  // by KernelShape::Kind
  double collectives = 1;
  SoftwareMemory memory = {};
  SoftwareTerms terms = {};
};

std::span<const Software> software_rows();
// Throws kInvalidArgument with the nearest name.
const Software* find_software(const std::string& name);  // null: none has that name
const Software& software_named(const std::string& name);

}  // namespace ranklab
