#include "core/sim/software.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// Kernels: elementwise, products, products in 8 and 4 bits, attention, quantization, loss (which software other than
// this project computes with several kernels in fp32); then collectives. Fitted to all published runs of each software
// that `plan validate` reads (docs/planner.md says what fits to halves of them predict); 1 where there were too few
// runs for a figure. Megatron's bytes follow from its code. Per logit: its fp32 copy, minus the 16-bit one that is
// freed with it. Per score: dropout's mask and result, 3 (arXiv 2205.05198, table 2). Between steps its optimizer for
// 16-bit parameters holds the gradients in fp32, and each stage holds its last input with the gradient; without
// Transformer Engine, its layers share a buffer for products of queries and keys.
constexpr SoftwareMemory kMegatronMemory{.activations = 1.12,
                                         .selective = 1.12,
                                         .experts = 1.4,
                                         .score_bytes = 3,
                                         .score_buffer_bytes = 2,
                                         .logit_bytes = 2,
                                         .shared_logit_bytes = 2,
                                         .fp32_gradients = 1,
                                         .stage_inputs = 2};
constexpr SoftwareMemory kMegatronCoreMemory{.activations = 1.12,
                                             .selective = 1.12,
                                             .experts = 1.4,
                                             .megatron_hybrids = true,
                                             .dropped_score_bytes = 3,
                                             .logit_bytes = 2,
                                             .shared_logit_bytes = 2,
                                             .own_workspaces = 1,
                                             .grouped_workspaces = 4,
                                             .fp32_gradients = 1,
                                             .stage_inputs = 2};
// exchange_bytes and gradient_copies: fitted to the memory of BLOOM's sweep of layouts, with and without fp32
// gradients.
constexpr SoftwareMemory kMegatronDeepSpeedMemory{.activations = 1.1,
                                                  .selective = 1.1,
                                                  .experts = 1.4,
                                                  .score_bytes = 4,
                                                  .logit_bytes = 2,
                                                  .shared_logit_bytes = 2,
                                                  .reserve = 0.1,
                                                  .exchange_bytes = 9e9,
                                                  .gradient_copies = 1,
                                                  .fp32_gradients = 1};
// PyTorch's FSDP has weights and gradients in fp32 and no 16-bit copy of a shard (16 bytes with AdamW, where this
// project has 14 after a step). The buffers into which it gathers the next layers exist in addition to the weights that
// are copied out of them, whereas this project uses what it gathers; and the embedding is kept together with the head.
// torchtitan's selective recomputation saves every second product, attention's result and each layer's input; without a
// compiler also the last product's result, which no backward needs. Bytes per logit: fp32 logits or their gradients,
// log_softmax and its gradient: 12; where tensor-parallel ranks share the vocabulary, also DTensor's exponentials: 16;
// in Nanotron fp32 logits and their softmax: 8.
constexpr double kCachedBlocks = 0.15;  // of PyTorch's allocator, from runs of torchtitan with and without a compiler
constexpr SoftwareMemory kEagerMemory{.activations = 1.58,
                                      .selective = 0.74,
                                      .experts = 1.58,
                                      .dropped_score_bytes = 3,
                                      .logit_bytes = 8,
                                      .shared_logit_bytes = 4,
                                      .reserve = kCachedBlocks,
                                      .accumulator_bytes = 4,
                                      .shard_bytes = 2,
                                      .gathered = 2};
// A compiled loss reads 16-bit logits and writes their gradient.
constexpr SoftwareMemory compiled_memory(double logit_bytes, double shared_logit_bytes) {
  return {.activations = 1,
          .selective = 0.64,
          .experts = 1,
          .dropped_score_bytes = 3,
          .logit_bytes = logit_bytes,
          .shared_logit_bytes = shared_logit_bytes,
          .reserve = kCachedBlocks,
          .accumulator_bytes = 2,
          .shard_bytes = 2,
          .gathered = 2};
}
constexpr SoftwareMemory kCompiledMemory = compiled_memory(8, 12);
// The ways in which ranks send each other updates are in software_terms.cpp.
constexpr Software eager(const char* name, const char* what) {
  return {name, what, {1.6, 1.25, 1.25, 1.35, 1.3, 3}, 1.2, kEagerMemory};
}
constexpr std::array kSoftware = {
    // This project, from two runs on an H100 (tests/gpu/results): 155 and 1190 ms, where kernels alone take 148 and
    // 1083.
    Software{"ranklab",
             "this project's kernels: norms, rotation, activations and losses are fused",
             {1.07, 1.07, 1.07, 1.07, 1.07, 1.07}},
    Software{"megatron",
             "Megatron-LM before Transformer Engine: GEMMs and a few fused kernels, fp16",
             {0.76, 1.21, 1, 2.5, 1, 3},
             1.3,
             kMegatronMemory},
    // From the passes that Zero Bubble's authors timed (arXiv 2401.10241, table 9): 18.5, 18.1 and 9.3 ms of F, B and
    // W, where products alone take 10.2, 11.6 and 8.6.
    Software{"megatron_2023",
             "Megatron-LM of 2023, whose GEMMs are as fast as in benchmarks (Zero Bubble's runs)",
             {2.1, 1, 1, 2.5, 1, 1},
             1.3,
             kMegatronMemory},
    Software{
        "megatron_deepspeed", "Megatron-DeepSpeed in fp16", {2.1, 1.06, 1, 1, 1, 3}, 0.75, kMegatronDeepSpeedMemory},
    Software{"megatron_deepspeed_bf16",
             "Megatron-DeepSpeed in bf16, whose optimizer accumulates and reduces gradients in fp32",
             {3, 1.07, 1, 1, 1, 3},
             2,
             kMegatronDeepSpeedMemory},
    Software{"megascale",
             "MegaScale: Megatron-LM with most communication overlapped",
             {1.5, 1.03, 1, 0.87, 1, 3},
             0.3,
             kMegatronMemory},
    eager("eager", "eager PyTorch: each operator is a kernel"),
    eager("nanotron", "Nanotron: eager PyTorch, whose ZeRO-1 gathers parameters piece by piece"),
    eager("internevo", "InternEvo: eager PyTorch, whose ZeRO-1 broadcasts whole parameters"),
    Software{"llm_foundry",
             "MosaicML's llm-foundry: eager PyTorch FSDP with attention in Triton",
             {2.7, 1.08, 1.08, 1.75, 1.3, 3},
             2,
             kEagerMemory},
    Software{
        "compiled", "torch.compile with FSDP: torchtitan and others", {1.15, 0.97, 0.5, 1, 1, 3}, 1, kCompiledMemory},
    Software{"compiled_loss",
             "torch.compile with FSDP, including the loss: torchtitan since 2025",
             {1.15, 0.97, 0.5, 1, 1, 1},
             1,
             compiled_memory(0, 0)},
    Software{"compiled_async_tp",
             "torchtitan with asynchronous tensor parallelism: communication split and overlapped with its GEMMs",
             {1.4, 1, 0.7, 1, 1.1, 3},
             1,
             kCompiledMemory},
    Software{"transformer_engine",
             "Megatron-Core with Transformer Engine, which fuses quantization and overlaps communication",
             {0.7, 1.07, 0.77, 1.4, 0.5, 3},
             0.65,
             kMegatronCoreMemory},
    Software{"megatron_core_26_06",
             "Megatron-Core as of NeMo 26.06, which also uses CUDA graphs",
             {0.25, 0.78, 0.85, 0.95, 0.65, 3},
             0.65,
             kMegatronCoreMemory}};

}  // namespace

std::span<const Software> software_rows() { return kSoftware; }

const Software* find_software(const std::string& name) {
  const auto* const row = std::ranges::find_if(kSoftware, [&](const Software& one) { return name == one.name; });
  return row == kSoftware.end() ? nullptr : row;
}

const Software& software_named(const std::string& name) {
  if (const Software* const row = find_software(name)) return *row;
  const std::vector<std::string> names = row_names(kSoftware);
  const std::string nearest = nearest_name(name, names);
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "software",
               .what = "--software names no measured software",
               .got = quote(name),
               .want = "one of " + join(names, ", "),
               .fix = nearest.empty() ? "choose one of these" : "write " + quote(nearest)});
}

}  // namespace ranklab
