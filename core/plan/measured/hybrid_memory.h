// What layers of hybrid models keep for their backward in Megatron-Core with Transformer Engine and mamba_ssm, counted
// from their code as arXiv 2205.05198 counts the layers of a GPT (section 4.1): each layer has one mixer, and mixers
// differ too much from this project's to share one factor. Thread rule: pure. Torch-free.
#pragma once
#include <optional>

#include "core/config/train_config.h"

namespace ranklab {

// Bytes that a microbatch keeps in the layers of a pipeline rank, on one tensor- and context-parallel rank, without
// attention scores. Nothing for other models, and for hybrids whose layers it does not count: with experts, latent or
// linear attention, multi-token prediction, or quantized products.
std::optional<double> hybrid_kept_bytes(const RunPlan& plan, int pp_rank);

}  // namespace ranklab
