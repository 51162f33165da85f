#include "core/plan/measured/measured_formats.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "core/base/text.h"
#include "core/spec/megatron_pattern.h"
#include "core/spec/megatron_sizes.h"

namespace ranklab {
namespace {

using Json = nlohmann::json;

// A value that may be absent or null.
template <typename T>
T value_of(const Json& from, const char* key, T otherwise) {
  const auto it = from.find(key);
  return it == from.end() || it->is_null() ? otherwise : it->template get<T>();
}
std::string word_of(const Json& from, const char* key, const char* otherwise = "") {
  return value_of<std::string>(from, key, otherwise);
}

// Copies a value, if present, under another name.
void take(Json& to, const char* name, const Json& from, const char* key) {
  if (from.contains(key) && !from[key].is_null()) to[name] = from[key];
}

// --- Megatron-LM: {"case", "config", "other_flags", "rows": [{"gpu", "gpus", "mem_alloc_bytes", ...}]} ---

bool is_text(const Json& flags, const char* key, const char* wanted) {
  return flags.contains(key) && flags[key].is_string() && flags[key].get<std::string>() == wanted;
}

// Whether an option is on: present, and neither false, null, 0 nor "none".
bool is_on(const Json& config, const char* key) {
  const auto it = config.find(key);
  if (it == config.end() || it->is_null()) return false;
  if (it->is_boolean()) return it->get<bool>();
  if (it->is_number()) return it->get<double>() != 0;
  return !it->empty() && *it != "" && *it != "none" && *it != "None" && *it != "false" && *it != "False";
}

std::string megatron_precision(const Json& config) {
  std::string text = word_of(config, "dtype", "bf16");
  if (!config.contains("fp8")) return text;
  const std::string recipe = word_of(config, "fp8_recipe", "delayed");
  return text + (recipe == "mxfp8" ? " MXFP8" : recipe == "blockwise" ? " 1x128" : " FP8-CS");
}

// The layers of a hybrid model; empty for other models.
MegatronPattern megatron_pattern(const Json& flags) {
  return parse_megatron_pattern(
      word_of(flags, "hybrid-layer-pattern", word_of(flags, "hybrid-override-pattern").c_str()));
}

// The number of layers in each stage, if a hybrid model's pattern has them, or if the first or the last have their own
// number. "" if stages cannot be split evenly over the ranks, if the other stages cannot divide the rest evenly, or if
// stages are interleaved, because then these numbers do not determine the stages.
std::string megatron_stages(const Json& config, const Json& flags) {
  const std::vector<int64_t> given = megatron_pattern(flags).stages;
  if (!given.empty() && value_of(config, "pp", 1) > 1)
    return given.size() % value_of<size_t>(config, "pp", 1) == 0 ? join(given, ",") : "";
  const int first = value_of(flags, "decoder-first-pipeline-num-layers", 0),
            last = value_of(flags, "decoder-last-pipeline-num-layers", 0), pp = value_of(config, "pp", 1);
  if (pp == 1 || (first <= 0 && last <= 0)) return "even";
  const auto own = [](int layers) { return layers > 0 ? std::optional<int64_t>(layers) : std::nullopt; };
  const StageEnds ends{.first = own(first), .last = own(last)};
  const auto stages = megatron_stage_layers(value_of(config, "layers", 0), pp, 1, ends);
  return stages && value_of(config, "vpp", 1) <= 1 ? join(*stages, ",") : "";
}

constexpr const char* kWorkspaceConfig = "CUBLAS_WORKSPACE_CONFIG";

// Parses a value such as ":4096:2:16:8": pairs of a size in KiB and a count. Nothing if it is missing or different.
std::optional<double> cublas_workspace_mib(const Json& env) {
  const std::string text = word_of(env, kWorkspaceConfig);
  if (text.empty()) return std::nullopt;
  const char* at = text.data();
  const char* const end = at + text.size();
  double kib = 0;
  while (at != end) {
    std::array<int, 2> pair = {};
    for (int& value : pair) {
      if (at == end || *at != ':') return std::nullopt;
      const auto [after, error] = std::from_chars(at + 1, end, value);
      if (error != std::errc() || value <= 0) return std::nullopt;
      at = after;
    }
    kib += static_cast<double>(pair[0]) * pair[1];
  }
  return kib / 1024;
}

// Layers of a hybrid case that cannot be planned; "" if all can.
std::string hybrid_reason(const MegatronPattern& pattern, bool has_experts) {
  if (pattern.has_linear()) return "the sizes of its gated delta nets (G) are not read";
  const std::string other = other_mtp_module(pattern, has_experts);
  return other.empty() ? "" : "its MTP modules have other layers than those here (" + other + ")";
}

// What a case uses that no model here has; "" if there is nothing.
std::string megatron_reason(const Json& test) {
  const Json &config = test.at("config"), &flags = test.at("other_flags");
  const std::string name = test.at("case");
  for (const char* other : {"bert/", "t5/", "mimo/", "gpt/gpt3_mcore_te_tp2_pp2_kd"})
    if (name.starts_with(other)) return std::string("another kind of model (") + other + ")";
  const MegatronPattern pattern = megatron_pattern(flags);
  for (const char* missing : {"spec", "export-kd-cfg"})
    // The specification of a hybrid model's layers says what its pattern says.
    if (flags.contains(missing) && (std::string(missing) != "spec" || pattern.layers() == 0))
      return std::string("this project has no --") + missing;
  if (const std::string why = hybrid_reason(pattern, config.contains("experts")); !why.empty()) return why;
  if (config.contains("fsdp")) return "Megatron's own FSDP";
  if (is_on(config, "cuda_graph")) return "CUDA graphs of parts of layers, which keep memory of their own";
  // The embedding's states, 12 bytes per element, are then on one rank. Which one depends on the number of parameters,
  // because they are dealt out to ranks by size, back and forth.
  if (flags.contains("no-use-layer-wise-param-layout"))
    return "a layer-wise optimizer that gives each of AdamW's parameters to one rank, too";
  if (flags.contains("tokenizer-type") && !config.contains("padded_vocab")) return "its vocabulary is not known";
  if (!config.contains("mbs") || (!config.contains("layers") && pattern.layers() == 0))
    return "the case does not say its size";
  const Json env = test.value("env", Json::object());
  if (!word_of(env, kWorkspaceConfig).empty() && !cublas_workspace_mib(env))
    return std::string(kWorkspaceConfig) + " is not a list of sizes and counts above 0";
  if (megatron_stages(config, flags).empty()) return "the layers of its stages are not known";
  return "";
}

// The older cluster's values come from a Transformer Engine whose fused attention was not deterministic, so runs that
// had to be deterministic used unfused attention. Where cases differ only in the requested attention, these values are
// equal to the byte.
bool chose_unfused(const Json& test, const Json& row) {
  const Json env = test.value("env", Json::object()), &flags = test.at("other_flags");
  const std::string allowed = "NVTE_ALLOW_NONDETERMINISTIC_ALGO";
  return word_of(row, "platform").find("dracooci") != std::string::npos && !flags.contains("attention-backend") &&
         env.contains(allowed) && env[allowed] == 0;
}

// Whether both legs of a resumed test, which run the same command, agree in memory to within a twentieth. If they do
// not, one leg's values come from another program, and it is unknown which.
bool legs_agree(const Json& rows, const Json& row) {
  constexpr double kApart = 0.05;
  for (const Json& other : rows) {
    if (word_of(other, "platform") != word_of(row, "platform") || word_of(other, "env") != word_of(row, "env"))
      continue;
    for (const char* key : {"mem_alloc_bytes", "mem_max_bytes"}) {
      const double one = value_of(row, key, 0.0), two = value_of(other, key, 0.0);
      if (std::min(one, two) > 0 && std::abs(one - two) > kApart * std::min(one, two)) return false;
    }
  }
  return true;
}

// 4 becomes "4"; "[0]*3+[1]" is unchanged.
std::string one_word(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// What a hybrid model's pattern and sizes say in addition.
void take_hybrid(Json& to, const Json& flags) {
  const MegatronPattern pattern = megatron_pattern(flags);
  if (pattern.layers() == 0) return;
  to["hybrid_pattern"] = pattern.mixers;
  if (!to.contains("layers")) to["layers"] = pattern.layers();
  if (!pattern.mtp_modules.empty()) to["mtp_depth"] = pattern.mtp_modules.size();
  const auto pp = static_cast<int64_t>(value_of(to, "pp", 1));
  if (pp > 1 && !pattern.stages.empty()) to["vpp"] = static_cast<int64_t>(pattern.stages.size()) / pp;
  for (const auto& [name, key] : {std::pair{"mamba_num_heads", "mamba-num-heads"},
                                  {"mamba_head_dim", "mamba-head-dim"},
                                  {"mamba_state_dim", "mamba-state-dim"},
                                  {"mamba_num_groups", "mamba-num-groups"}})
    take(to, name, flags, key);
}

Json megatron_config(const Json& test) {
  const Json &from = test.at("config"), &flags = test.at("other_flags");
  Json to = Json::object();
  for (const char* same : {"layers", "hidden", "heads", "kv_heads", "head_dim", "seq", "tp", "pp", "cp", "ep", "etp",
                           "vpp", "norm", "swiglu", "experts", "topk", "recompute", "recompute_modules"})
    take(to, same, from, same);
  take(to, "position", from, "pos");
  if (flags.contains("no-rope-freq")) to["no_rope_freq"] = one_word(flags["no-rope-freq"]);
  if (flags.contains("squared-relu")) to["activation"] = "squared_relu";
  to["vocab"] = value_of(from, "padded_vocab", megatron_vocabulary(kGpt2Tokens, value_of(from, "tp", 1)));
  to["layout"] = megatron_stages(from, flags);
  take(to, "micro_batch", from, "mbs");
  take(to, "global_batch", from, "gbs");
  take(to, "moe_ffn", from, "moe_ffn");
  take(to, "shared_ffn", from, "shared_ffn");
  take(to, "mtp_depth", from, "mtp");
  to["mtp_repeated"] = flags.contains("mtp-use-repeated-layer");
  take(to, "moe_latent", flags, "moe-latent-size");
  take(to, "microbatch_group", flags, "microbatch-group-size-per-virtual-pipeline-stage");
  take_hybrid(to, flags);
  to["ffn"] = from.contains("ffn") ? from["ffn"].get<double>()
                                   : megatron_ffn(value_of(from, "hidden", 0.0), value_of(from, "swiglu", false));
  to["tied"] = value_of(from, "tied", false);
  to["bias"] = !flags.contains("disable-bias-linear");
  to["sequence_parallel"] = value_of(from, "sp", false) && value_of(from, "tp", 1) > 1;
  to["zero"] = value_of(from, "dist_opt", false) ? 1 : 0;
  to["grad_bucket_overlap"] = value_of(from, "overlap_grad", false);
  take(to, "deterministic", from, "deterministic");
  to["precision"] = megatron_precision(from);
  // In cases with this in their name, layers of experts are Transformer Engine's, whatever the other layers are.
  const bool engine_experts =
      value_of(from, "experts", 0) > 0 && word_of(test, "case").find("_te_") != std::string::npos;
  const bool local = word_of(from, "impl", "transformer_engine") == "local" && !engine_experts;
  to["framework"] = local ? "Megatron-LM local" : "Megatron-Core";
  to["attention"] =
      is_text(flags, "attention-backend", "unfused") || word_of(from, "impl") == "local" ? "unfused" : "flash";
  const auto dropout = [&](const char* key) {
    return !flags.contains(key) || !flags[key].is_number() || flags[key].get<double>() > 0;
  };
  to["dropout"] = dropout("attention-dropout");
  to["hidden_dropout"] = dropout("hidden-dropout");
  if (word_of(from, "optimizer") == "muon") {
    to["optimizer"] = "muon";
    to["muon_distribution"] = "layer-sharded";  // a rank has whole matrices, as in its layer-wise optimizer
  }
  if (const auto mib = cublas_workspace_mib(test.value("env", Json::object()))) to["cublas_workspace_mib"] = *mib;
  to["grouped_gemm"] = value_of(from, "grouped_gemm", false);
  take(to, "optimizer_instances", flags, "num-distributed-optimizer-instances");
  if (value_of(from, "mla", false)) {
    for (const auto& [name, key] : {std::pair{"kv_lora", "kv-lora-rank"},
                                    {"q_lora", "q-lora-rank"},
                                    {"head_dim", "qk-head-dim"},
                                    {"v_head_dim", "v-head-dim"},
                                    {"rope_dim", "qk-pos-emb-head-dim"}})
      take(to, name, flags, key);
  }
  return to;
}

// If the median is twice the run's own fastest step, steps were waiting for something that no row records.
bool is_steady(const Json& row) {
  const double median = value_of(row, "iter_s", 0.0);
  return median <= 2 * value_of(row, "iter_s_min", median);
}

std::vector<Json> megatron_rows(const Json& cases) {
  std::vector<Json> rows;
  for (const Json& test : cases) {
    const std::string reason = megatron_reason(test);
    for (const Json& row : test.at("rows")) {
      Json out = {{"id", test.at("case").get<std::string>() + "@" + word_of(row, "platform") + "-" +
                             word_of(row, "env") + "-" + std::to_string(value_of(row, "part", 1))},
                  {"source", "Megatron-LM golden values"},
                  {"config", megatron_config(test)},
                  {"measured", Json::object()}};
      take(out["config"], "gpus", row, "gpus");
      take(out["config"], "gpu_type", row, "gpu");
      take(out["measured"], "static_bytes", row, "mem_alloc_bytes");
      take(out["measured"], "last_stage_peak_bytes", row, "mem_max_bytes");
      if (value_of(test, "realistic_time", false) && is_steady(row))
        take(out["measured"], "step_time_s", row, "iter_s");
      if (chose_unfused(test, row)) out["config"]["attention"] = "unfused";
      if (!legs_agree(test.at("rows"), row))
        out["left_out"] = "the two legs of its test have different memory, and run one command";
      if (!reason.empty()) out["left_out"] = reason;
      rows.push_back(std::move(out));
    }
  }
  return rows;
}

// --- tables of rows ---

Json bloom_row(const Json& from) {
  Json config = {{"model", "GPT (BLOOM " + word_of(from, "size") + ")"},
                 {"seq", 2048},
                 {"vocab", 250880},
                 {"gpu_type", "A100-80GB"},
                 {"precision", "bf16"},
                 {"framework", "Megatron-DeepSpeed"},
                 {"recompute", "full"},
                 {"tied", true},
                 {"attention", "unfused"},
                 {"sequence_parallel", false},
                 {"network", "4x100Gb/s Omni-Path"}};
  for (const char* same : {"layers", "hidden", "heads", "gpus", "tp", "pp", "zero"}) take(config, same, from, same);
  take(config, "micro_batch", from, "mbs");
  take(config, "global_batch", from, "gbs");
  take(config, "gradients", from, "grads");
  // From that date on its nodes were 1 to 5 % faster: "do not compare" (chronicles-prequel.md, GBS variations).
  config["machine_state"] = word_of(from, "date") < "02-25" ? "as it was" : "improved";
  // "320 | async | always hangs" (dealing with hanging): runs at least this large used CUDA_LAUNCH_BLOCKING=1.
  constexpr double kHangs = 320;
  config["launch_blocking"] = value_of(from, "gpus", 0.0) >= kHangs;
  Json measured = Json::object();
  take(measured, "step_time_s", from, "sec_per_iter");
  take(measured, "device_memory_GiB", from, "mem_gb");
  Json row = {{"source", "BLOOM layout sweep"}, {"config", config}, {"measured", measured}};
  if (value_of(from, "oom", false)) row["left_out"] = "it ran out of memory";
  return row;
}

Json internevo_row(const Json& from) {
  Json config = {{"model", word_of(from, "model")},
                 {"vocab", 103168},
                 {"ffn", 11008},
                 {"framework", "InternEvo"},
                 {"network", "4x100Gb/s RoCE"}};
  for (const char* same : {"layers", "hidden", "heads", "seq", "gpus", "tp", "precision"})
    take(config, same, from, same);
  take(config, "kv_heads", from, "heads");
  take(config, "gpu_type", from, "gpu");
  take(config, "micro_batch", from, "mbs");
  config["global_batch"] = value_of(from, "mbs", 1.0) * value_of(from, "microbatches", 1.0) *
                           value_of(from, "gpus", 1.0) / value_of(from, "tp", 1.0);
  config["zero"] = 1;
  config["states_within_node"] = value_of(from, "zero1", -1.0) > 0;  // -1: all ranks share the optimizer's states
  config["recompute"] = value_of(from, "act_ckpt", false) ? "full" : "none";
  Json measured = Json::object();
  take(measured, "tokens_per_s_per_gpu", from, "tgs");
  take(measured, "peak_memory_GB", from, "mem_gb");
  return {{"source", "InternEvo"}, {"config", config}, {"measured", measured}};
}

Json foundry_row(const Json& from) {
  Json config = {{"model", "GPT (" + word_of(from, "model") + ")"},
                 {"framework", "llm-foundry"},
                 {"position", "learned_absolute"},
                 {"norm", "LayerNorm"},
                 {"swiglu", false},
                 {"bias", false},
                 {"tied", true},
                 {"attention", "flash"}};
  for (const char* same : {"layers", "hidden", "heads", "ffn", "vocab", "seq", "gpus"}) take(config, same, from, same);
  const std::string gpu = word_of(from, "gpu");
  config["gpu_type"] = gpu.starts_with("h100") ? "H100-80GB" : gpu.starts_with("a100_80") ? "A100-80GB" : gpu;
  take(config, "micro_batch", from, "mbs");
  take(config, "global_batch", from, "gbs");
  const std::string precision = word_of(from, "precision", "amp_bf16");
  config["precision"] = precision.find("fp8") != std::string::npos ? "bf16 FP8-CS" : "bf16";
  config["zero"] = word_of(from, "sharding") == "FULL_SHARD" ? 3 : word_of(from, "sharding") == "SHARD_GRAD_OP" ? 2 : 0;
  config["recompute"] = value_of(from, "act_ckpt", false) ? "full" : "none";
  Json measured = Json::object();
  take(measured, "step_time_s", from, "step_s");
  Json row = {{"source", "llm-foundry MPT"}, {"config", config}, {"measured", measured}};
  if (value_of(from, "act_offload", false)) row["left_out"] = "activations are moved to the host";
  return row;
}

// Converts a row of any table to one form; tables are recognized by columns that only they have.
Json common_row(const Json& row) {
  if (!row.is_object() || row.contains("measured")) return row;
  if (row.contains("tflops_formula")) return bloom_row(row);
  if (row.contains("zero1")) return internevo_row(row);
  if (row.contains("act_offload")) return foundry_row(row);
  return row;
}

}  // namespace

std::vector<Json> measured_rows(const Json& file) {
  if (file.is_object() && file.contains("cases") && file["cases"].is_array()) return megatron_rows(file["cases"]);
  const Json* rows = file.is_array() ? &file : nullptr;
  for (const char* key : {"rows", "runs"})
    if (file.is_object() && file.contains(key) && file[key].is_array()) rows = &file[key];
  std::vector<Json> out;
  if (rows == nullptr) return out;
  for (size_t i = 0; i < rows->size(); ++i) {
    out.push_back(common_row((*rows)[i]));
    if (out.back().is_object() && !out.back().contains("id")) out.back()["id"] = "row " + std::to_string(i);
  }
  return out;
}

}  // namespace ranklab
