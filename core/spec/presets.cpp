#include "core/spec/presets.h"

#include "core/base/named_rows.h"
#include "core/spec/presets/models.h"

namespace ranklab {

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> kPresets = {
      {"gpt_tiny", "ranklab's default: bytes, trains on a laptop in a minute", ModelConfig{}},
      {"gpt_10m", "the run of examples/runs: a tokenizer of 4096 tokens, an hour of CPU", presets::gpt_10m()},
      {"gpt2_124m", "Radford et al. 2019; huggingface.co/openai-community/gpt2", presets::gpt2_124m()},
      {"gpt_3b", "GPT-3 2.7B; arXiv 2005.14165 table 2.1", presets::gpt_3b()},
      {"llama_1b", "Llama 3.2 1B; huggingface.co/meta-llama/Llama-3.2-1B", presets::llama(16, 2048, 8192, 32, true)},
      {"llama_8b", "Llama 3.1 8B; arXiv 2407.21783 table 3", presets::llama(32, 4096, 14336, 8, false)},
      {"llama_70b", "Llama 3.1 70B; arXiv 2407.21783 table 3", presets::llama_70b()},
      {"llama_405b", "Llama 3.1 405B; arXiv 2407.21783 table 3", presets::llama_405b()},
      {"llama4_scout", "Llama 4 Scout, 17B active; huggingface.co/meta-llama/Llama-4-Scout-17B-16E",
       presets::llama4_scout()},
      {"llama4_maverick", "Llama 4 Maverick, 17B active; huggingface.co/meta-llama/Llama-4-Maverick-17B-128E",
       presets::llama4_maverick()},
      {"llama4_tiny", "a small Llama 4: chunks, layers without positions, 8 experts in every other layer",
       presets::llama4_tiny()},
      {"mixtral_8x7b", "Mixtral 8x7B; arXiv 2401.04088", presets::mixtral_8x7b()},
      {"deepseek_v2", "DeepSeek-V2, 236B of which 21B active; arXiv 2405.04434", presets::deepseek_v2()},
      {"deepseek_v2_lite", "DeepSeek-V2-Lite, 15.7B of which 2.4B active; arXiv 2405.04434",
       presets::deepseek_v2_lite()},
      {"deepseek_v3", "DeepSeek-V3, 671B of which 37B active; arXiv 2412.19437", presets::deepseek_v3()},
      {"deepseek_v3_tiny", "a small DeepSeek-V3: latent attention, 8 experts, MTP", presets::deepseek_v3_tiny()},
      {"kimi_k2", "Kimi K2, 1T of which 32B active; arXiv 2507.20534", presets::kimi_k2()},
      {"qwen3_0.6b", "Qwen3 0.6B; huggingface.co/Qwen/Qwen3-0.6B", presets::qwen3_0_6b()},
      {"qwen3_8b", "Qwen3 8B; huggingface.co/Qwen/Qwen3-8B", presets::qwen3(36, 4096, 12288, 32, 8)},
      {"qwen3_30b_a3b", "Qwen3 30B, of which 3B active; huggingface.co/Qwen/Qwen3-30B-A3B", presets::qwen3_30b_a3b()},
      {"qwen3_32b", "Qwen3 32B; huggingface.co/Qwen/Qwen3-32B", presets::qwen3(64, 5120, 25600, 64, 8)},
      {"qwen3_235b_a22b", "Qwen3 235B, of which 22B active; huggingface.co/Qwen/Qwen3-235B-A22B",
       presets::qwen3_235b_a22b()},
      {"qwen3_moe_tiny", "a small Qwen3 with experts: heads wider than hidden / heads", presets::qwen3_moe_tiny()},
      {"qwen3_next_80b_a3b",
       "Qwen3-Next, 80B of which 3B active, linear attention in 3 layers of 4; "
       "huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct",
       presets::qwen3_next_80b_a3b()},
      {"qwen3_next_tiny", "a small Qwen3-Next: linear attention, gated attention, 8 experts and a shared one",
       presets::qwen3_next_tiny()},
      {"olmo2_7b", "OLMo 2 7B; huggingface.co/allenai/OLMo-2-1124-7B", presets::olmo2_7b()},
      {"gemma2_2b", "Gemma 2 2B; huggingface.co/google/gemma-2-2b", presets::gemma2_2b()},
      {"gemma3_1b", "Gemma 3 1B; huggingface.co/google/gemma-3-1b-pt", presets::gemma3_1b()},
      {"smollm3_3b", "SmolLM 3 3B, as it begins; huggingface.co/HuggingFaceTB/SmolLM3-3B", presets::smollm3_3b()},
      {"nemotron4_15b", "Nemotron-4 15B; arXiv 2402.16819", presets::nemotron4_15b()},
      {"nemotron_h_8b",
       "Nemotron-H 8B, Mamba-2 and MLPs with attention in 4 of 52 layers; huggingface.co/nvidia/Nemotron-H-8B-Base-8K",
       presets::nemotron_h_8b()},
      {"nemotron_h_tiny", "a small Nemotron-H: Mamba-2, attention, an MLP and 8 experts in layers of their own",
       presets::nemotron_h_tiny()},
      {"glm4_5_air", "GLM-4.5-Air; arXiv 2508.06471", presets::glm4_5_air()},
      {"glm4_5", "GLM-4.5; arXiv 2508.06471", presets::glm4_5()},
      {"gpt_oss_20b", "gpt-oss 20B; huggingface.co/openai/gpt-oss-20b", presets::gpt_oss(24, 32)},
      {"gpt_oss_120b", "gpt-oss 120B; huggingface.co/openai/gpt-oss-120b", presets::gpt_oss(36, 128)},
      {"tinytron_0.25b", "github.com/liangyuwang/Tinytron README", presets::tinytron(12, 32, 4, 1024, 4096)},
      {"tinytron_1b", "github.com/liangyuwang/Tinytron README", presets::tinytron(24, 64, 8, 2048, 8192)},
      {"tinytron_7b", "github.com/liangyuwang/Tinytron README", presets::tinytron(32, 128, 16, 4096, 16384)},
      {"moe_0.3b_a0.17b", "github.com/liangyuwang/Tinytron scripts: 8 experts, two a token", presets::moe_03b_a017b()},
      {"peer_s", "the S model of ./ranklab bench train", presets::peer(128, 352, 256, 128), 32},
      {"peer_m", "the M model of ./ranklab bench train", presets::peer(512, 1408, 8192, 256), 16},
  };
  return kPresets;
}

const ModelConfig& model_preset(const std::string& name) { return find_model_preset(name).config; }

const ModelPreset& find_model_preset(const std::string& name) {
  return named_row(model_presets(), name,
                   {.where = "model presets", .what = "no such preset", .fix = "see: ranklab list presets"});
}

}  // namespace ranklab
