// The families of family.h, each defined in a file whose name its own begins with. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/family.h"

namespace ranklab {

HfFamily llama_family();
HfFamily gpt2_family();
HfFamily mistral_family();      // arXiv 2310.06825
HfFamily phi3_family();         // arXiv 2404.14219
HfFamily stablelm_family();     // arXiv 2402.17834
HfFamily mixtral_family();      // arXiv 2401.04088
HfFamily deepseek_v2_family();  // arXiv 2405.04434
HfFamily deepseek_v3_family();  // arXiv 2412.19437
HfFamily glm4_moe_family();     // arXiv 2508.06471
HfFamily phi_family();          // arXiv 2306.11644
HfFamily gpt_neox_family();     // arXiv 2204.06745
HfFamily nemotron_family();     // arXiv 2402.16819
HfFamily nemotron_h_family();   // arXiv 2504.03624
HfFamily smollm3_family();
HfFamily seed_oss_family();
HfFamily granite_family();
HfFamily granite_moe_family();
HfFamily glm4_family();
HfFamily ernie4_5_family();
HfFamily ernie4_5_moe_family();
HfFamily cohere_family();
HfFamily cohere2_family();
HfFamily llama4_family();
HfFamily gpt_oss_family();  // arXiv 2508.10925
HfFamily gemma2_family();   // arXiv 2408.00118
HfFamily gemma3_family();   // arXiv 2503.19786
HfFamily olmo3_family();
HfFamily olmo2_family();  // arXiv 2501.00656
HfFamily qwen2_family();  // arXiv 2407.10671
HfFamily qwen2_moe_family();
HfFamily qwen3_family();  // arXiv 2505.09388
HfFamily qwen3_moe_family();
HfFamily qwen3_next_family();  // arXiv 2412.06464
HfFamily qwen3_5_family();
HfFamily qwen3_5_moe_family();

}  // namespace ranklab
