#include "core/plan/measured/measured_runs.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"
#include "core/plan/measured/measured_formats.h"
#include "core/plan/measured/row_dates.h"
#include "core/plan/measured/row_gpu.h"
#include "core/plan/measured/row_reader.h"
#include "core/plan/measured/row_software.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {
namespace {

using Json = nlohmann::json;

// Sizes that must be numbers if a row has them. Other values may be text from a paper: "3072->15360 over 469B tokens".
constexpr const char* kSizes =
    "layers hidden heads seq gpus kv_heads head_dim kv_lora experts shared_ffn mtp_depth moe_latent microbatch_group "
    "tp pp cp ep mamba_num_heads mamba_head_dim mamba_state_dim mamba_num_groups";

class RowPlan {
 public:
  RowPlan(const Json& row, MeasuredRun& run) : c_(row.at("config")), run_(run) {}

  void settle() {
    for (const char* key : {"layers", "hidden", "heads", "seq", "gpus", "gpu_type"})
      if (!c_.has(key)) return leave_out(std::string("the row has no ") + key);
    for (const std::string& key : split(kSizes, ' '))
      if (c_.has_other_than_number(key.c_str()))
        return leave_out("its " + key + " is not a number: " + c_.shown(key.c_str()));
    if (holds(c_.text("phase"), "LoRA"))
      return leave_out("LoRA has weight gradients of a few small matrices alone, and no model here");
    const char* const profile = profile_of_gpu(c_.text("gpu_type"));
    if (profile == nullptr) return leave_out("no profile of " + c_.text("gpu_type"));
    if (const std::string why = software_.unknown(); !why.empty()) return leave_out(why);
    run_.gpu = profile;
    set("sim.hardware", run_.gpu);
    set("sim.efficiency", "measured");
    model();
    layout();
    batch();
    precision();
    if (gpus_of_node() != kUsualNode) set("sim.gpus_per_node", gpus_of_node());
    if (const std::string change = what_if(); !change.empty()) set("sim.what_if", change);
    set("sim.software", software_.name());
  }

 private:
  void set(const char* key, const std::string& text) { run_.settings.push_back({key, text, "row " + run_.id}); }
  void set(const char* key, double value) { set(key, strprintf("%.15g", value)); }
  void leave_out(const std::string& why) { run_.left_out = why; }

  static constexpr int kUsualNode = 8;
  int gpus_of_node() const {
    const std::string gpu = lower_case(c_.text("gpu_type"));
    if (holds(gpu, "gb200") || holds(gpu, "gb300")) return 64;  // a rack has 72, of which a power of two is used
    return holds(gpu, "4 per node") ? 4 : kUsualNode;
  }

  // Bandwidth per GPU for "4x100Gb/s Omni-Path" or "400 Gb/s per node"; the GPUs of a node share its NICs.
  std::optional<double> nic_gb_s(const std::string& network) const {
    int nics = 0;
    double gbit_s = 0;
    constexpr double kBits = 8;
    if (holds(network, "Gb/s per node") && std::sscanf(network.c_str(), "%lf", &gbit_s) == 1 && gbit_s >= 25 &&
        std::isfinite(gbit_s))
      return gbit_s / kBits / std::min(gpus_of_node(), kUsualNode);
    if (std::sscanf(network.c_str(), "%dx%lf", &nics, &gbit_s) != 2 || nics <= 0 || !(gbit_s >= 25) ||
        !std::isfinite(gbit_s))
      return std::nullopt;
    return nics * gbit_s / kBits / std::min(gpus_of_node(), kUsualNode);
  }

  // What the row says about its machine and its workspaces.
  std::string what_if() const {
    std::vector<std::string> changes;
    if (const auto nic = nic_gb_s(c_.text("network"))) changes.push_back(strprintf("nic=%.6g", *nic));
    if (const auto mib = c_.number("cublas_workspace_mib")) changes.push_back(strprintf("cublas-workspace=%.6g", *mib));
    if (!c_.is("grouped_gemm", true)) changes.push_back("grouped-workspaces=0");
    if (c_.is("deterministic", false)) changes.push_back("attention=2x");
    if (c_.is("states_within_node", false)) changes.push_back("pieces=0");
    if (c_.is("launch_blocking", false)) changes.push_back("launch-blocking=1");
    if (exchanges_beside_compute()) changes.push_back("launches=1.5x");
    return join(changes, ",");
  }
  // Except on racks, NeMo's recipes of these releases overlap the token exchange of one microbatch with the compute of
  // another where stages are interleaved; Python then launches each part of a layer separately.
  bool exchanges_beside_compute() const {
    const std::string container = c_.text("container"), release = release_in(container);
    const bool then = release == "25.11" || (release == "26.02" && !holds(container, "26.02."));
    return then && c_.has("experts") && stages_of_rank(c_.number_or("pp", 1)) > 1 && gpus_of_node() == kUsualNode;
  }

  void model() {
    const double hidden = *c_.number("hidden"), heads = *c_.number("heads");
    set("model.num_layers", *c_.number("layers"));
    set("model.hidden_size", hidden);
    set("model.num_attention_heads", heads);
    set("model.seq_length", *c_.number("seq"));
    const bool gpt = holds(c_.text("model"), "GPT") || (!c_.has("kv_heads") && !c_.has("experts"));
    set("model.vocab_size", c_.number_or("vocab", gpt ? 51200 : 128256));
    set("model.ffn_hidden_size",
        c_.number_or("ffn_dense", c_.number_or("ffn", gpt ? 4 * hidden : usual_gated(hidden))));
    if (c_.has("kv_heads")) set("model.num_query_groups", *c_.number("kv_heads"));
    if (c_.has("head_dim") && !c_.has("kv_lora")) set("model.kv_channels", *c_.number("head_dim"));
    set("model.tie_embeddings", c_.is("tied", gpt) ? "true" : "false");
    set("model.norm", c_.has("norm") ? c_.text("norm") : gpt ? "LayerNorm" : "RMSNorm");
    set("model.activation", c_.has("activation")                       ? c_.text("activation")
                            : c_.is("swiglu", !gpt && !c_.has("norm")) ? "swiglu"
                                                                       : "gelu");
    set("model.position", c_.has("position") ? c_.text("position") : gpt ? "learned_absolute" : "rope");
    if (c_.has("no_rope_freq")) set("model.no_rope_freq", c_.text("no_rope_freq"));
    set("model.add_bias", c_.is("bias", gpt && !c_.has("experts")) ? "true" : "false");
    const bool dropped = c_.is("dropout", false);
    if (dropped) set("model.attention_dropout", 0.1);
    if (c_.is("hidden_dropout", dropped)) set("model.dropout", 0.1);
    if (c_.has("kv_lora")) latent();
    if (c_.has("hybrid_pattern")) hybrid();
    if (c_.has("experts")) experts();
    if (c_.has("mtp_depth")) set("mtp.num_layers", *c_.number("mtp_depth"));
    if (c_.is("mtp_repeated", false)) set("mtp.use_repeated_layer", "true");
  }
  // 8/3 of the hidden size, plus 30 %, rounded up to a multiple of 256 (KempnerForge's "auto 1.3x").
  static double usual_gated(double hidden) { return std::ceil(hidden * 8 / 3 * 1.3 / 256) * 256; }

  void latent() {
    set("mla.kv_lora_rank", *c_.number("kv_lora"));
    set("mla.q_lora_rank", c_.number_or("q_lora", 0));
    const double head = c_.number_or("head_dim", 128);
    set("mla.qk_head_dim", head);
    set("mla.v_head_dim", c_.number_or("v_head_dim", head));
    set("mla.qk_pos_emb_head_dim", c_.number_or("rope_dim", 64));
  }
  void hybrid() {
    set("model.hybrid_layer_pattern", c_.text("hybrid_pattern"));
    for (const std::string size : {"num_heads", "head_dim", "state_dim", "num_groups"})
      if (const auto given = c_.number(("mamba_" + size).c_str())) set(("mamba." + size).c_str(), *given);
  }
  void experts() {
    set("moe.num_experts", *c_.number("experts"));
    set("moe.topk", c_.number_or("topk", 1));
    const double wide = c_.number_or("moe_ffn", c_.number_or("ffn", 0));
    set("moe.ffn_hidden_size", wide);
    if (c_.has("moe_latent")) set("moe.latent_size", *c_.number("moe_latent"));
    if (c_.has("shared_ffn")) set("moe.shared_ffn_hidden_size", *c_.number("shared_ffn"));
    if (c_.number_or("shared_experts", 0) > 0) set("moe.shared_ffn_hidden_size", wide * *c_.number("shared_experts"));
    set("moe.first_dense_layers", c_.number_or("first_dense_layers", 0));
    set("moe.force_balance", "true");
    set("moe.balancing", "none");
    // NeMo's recipes also use DeepEP to send tokens to other nodes.
    const bool to_others = c_.number_or("ep", 1) * c_.number_or("tp", 1) > gpus_of_node();
    if (to_others && (c_.text("dispatcher") == "DeepEP" || c_.has("container")))
      set("parallel.moe_dispatcher", "dedup");
  }

  void layout() {
    const double tp = c_.number_or("tp", 1), pp = c_.number_or("pp", 1), vpp = stages_of_rank(pp);
    set("parallel.world_size", *c_.number("gpus"));
    set("parallel.tp", tp);
    set("parallel.pp", pp);
    if (c_.number_or("cp", 1) > 1) set("parallel.cp", *c_.number("cp"));
    if (c_.number_or("ep", 1) > 1) set("parallel.ep", *c_.number("ep"));
    if (c_.has("experts") && (c_.has("etp") || c_.has("norm"))) set("parallel.etp", c_.number_or("etp", tp));
    set("parallel.sequence_parallel", tp > 1 && c_.is("sequence_parallel", software_.newer()) ? "true" : "false");
    if (pp > 1) {
      set("parallel.pipeline_schedule", schedule(vpp));
      if (vpp > 1) set("parallel.vpp", vpp);
      if (vpp > 1 && c_.has("microbatch_group"))
        set("parallel.microbatch_group_size_per_vp_stage", *c_.number("microbatch_group"));
      if (c_.has("layout"))
        set("parallel.pipeline_layout", c_.text("layout"));
      else if (shorter_ends())
        stages_with_short_ends(pp * vpp);
    }
    set("parallel.zero_stage", zero());
    if (c_.number_or("optimizer_instances", 1) > 1) set("parallel.replicas", *c_.number("optimizer_instances"));
    if (c_.has("optimizer")) set("optim.optimizer", c_.text("optimizer"));
    if (c_.has("muon_distribution")) set("optim.muon_distribution", c_.text("muon_distribution"));
    set("parallel.overlap_grad_reduce", c_.is("grad_bucket_overlap", software_.newer()) ? "true" : "false");
    set("memory.recompute_granularity", recompute());
    if (c_.has("recompute_modules") && recompute() == "selective") set("memory.recompute_modules", known_modules());
    if (const std::string why = unplanned_module(); !why.empty()) leave_out(why);
    if (c_.text("attention") == "unfused" || (!software_.newer() && !c_.has("attention")))
      set("parallel.attention_backend", "unfused");
  }
  bool shorter_ends() const {
    const double layers = c_.number_or("layers", 0), pp = c_.number_or("pp", 1);
    // The embedding and the head are then separate stages.
    if (layers + 2 == pp * c_.number_or("vpp", 1)) return true;
    if (software_.torchtitan() && names_interleaved() && std::fmod(layers + 2, 2 * pp) == 0) return true;
    return holds(c_.text("note"), "first and last stage hold one layer fewer") ||
           holds(c_.text("schedule"), "one layer removed from first and last stage");
  }
  void stages_with_short_ends(double stages) {
    const double each = std::floor((*c_.number("layers") + 2) / stages);
    std::string layout = strprintf("%.0f", each - 1);
    for (int stage = 1; stage < static_cast<int>(stages) - 1; ++stage) layout += strprintf(",%.0f", each);
    set("parallel.pipeline_layout", layout + strprintf(",%.0f", each - 1));
  }
  bool names_interleaved() const {
    const std::string said = c_.text("schedule");
    return holds(said, "nterleaved") && !holds(said, "non-interleaved") && !holds(said, "assumed");
  }

  // The number of stages per rank. If a row says that they are interleaved but not how many there are, it is two; or,
  // if the end stages are one layer shorter than the others, one per layer, where the first stage has only the
  // embedding (arXiv 2407.21783, section 3.3.2).
  double stages_of_rank(double pp) const {
    if (const auto said = c_.number("vpp")) return *said;
    const bool of_a_layer = shorter_ends() && !software_.torchtitan();
    const double layers = c_.number_or("layers", 0) + (shorter_ends() ? 2 : 0), stages = of_a_layer ? layers / pp : 2;
    return names_interleaved() && stages >= 2 && std::fmod(layers, of_a_layer ? pp : 2 * pp) == 0 ? stages : 1;
  }

  std::string schedule(double vpp) const {
    const std::string said = c_.text("schedule");
    if (holds(said, "ZB-2p")) return "zb-2p";
    if (holds(said, "ZB-1p")) return "zb-h1";
    if (holds(said, "ZBV") || holds(said, "ZB-V")) return "zb-v";
    if (holds(said, "DualPipe")) return "dualpipe";
    return vpp > 1 ? "interleaved-1f1b" : "1f1b";
  }
  std::string zero() const {
    // PyTorch's FSDP keeps layers gathered, and their gradients whole, until the end of a pipeline's step.
    if (c_.number_or("fsdp", 0) > 0) return c_.number_or("pp", 1) > 1 ? "1" : "3";
    if (software_.torchtitan() && c_.number_or("zero", 0) == 3 && c_.number_or("pp", 1) > 1) return "1";
    if (const auto stage = c_.number("zero")) return strprintf("%.0f", *stage);
    if (holds(c_.text("zero"), "FSDP")) return "2";
    return software_.newer() ? "1" : "0";
  }
  std::string recompute() const {
    const std::string said = c_.text("recompute");
    if (software_.torchtitan() && said.empty()) return "selective";  // its default
    if (holds(said, "full")) return "full";
    const bool none_known = c_.has("recompute_modules") && known_modules().empty();
    return selective() && !none_known ? "selective" : "none";
  }
  bool selective() const { return holds(c_.text("recompute"), "selective"); }

  // Of the modules in Megatron's list, those that plans here support and that the model has.
  std::string known_modules() const {
    const std::vector<std::string> said = c_.words("recompute_modules");
    const bool experts_alone = c_.has("experts") && c_.number_or("first_dense_layers", 0) == 0;
    std::vector<std::string> known;
    for (const RecomputedModuleName& one : kRecomputedModules) {
      if (one.chosen == &RecomputedModules::mlp && experts_alone) continue;
      if (std::ranges::find(said, one.name) != said.end()) known.emplace_back(one.name);
    }
    return join(known, ",");
  }
  // Why a module that the row recomputes cannot be planned; "" if all can. Outputs of norms and activations are
  // recomputed here in any case, and shared experts together with the half of a layer that contains them (moe).
  std::string unplanned_module() const {
    const std::vector<std::string> all = c_.words("recompute_modules");
    const auto named = [&](std::string_view name) { return std::ranges::find(all, name) != all.end(); };
    for (const std::string& said : all) {
      const auto known = [&](const RecomputedModuleName& one) { return said == one.name; };
      if (!selective() || std::ranges::any_of(kRecomputedModules, known) || said == "layernorm" || said == "moe_act")
        continue;
      if (said == "shared_experts" && named("moe")) continue;
      if (said == "shared_experts")
        return "shared experts are recomputed here with all of the layer's experts alone (moe)";
      if (said == "mla_up_proj") return "what latents are projected up to (mla_up_proj) is not recomputed alone here";
      return "what recomputing the module " + said + " saves is not known";
    }
    return "";
  }

  void batch() {
    // torchtitan splits a local batch into as many microbatches as its pipeline has ranks.
    const double pp = c_.number_or("pp", 1);
    const bool cut = !c_.has("micro_batch") && c_.has("local_batch") && pp > 1;
    const double global = global_batch_of(c_);
    if (global < replicas_of(c_)) return leave_out("the row has no batch");
    set("train.global_batch_size", global);
    const double sequences = sequences_at_once(c_);
    if (cut && sequences > pp && std::fmod(sequences, pp) != 0)
      return leave_out("its local batch cannot be cut into as many microbatches as its pipeline has ranks");
    set("train.micro_batch_size", std::max(sequences / (cut ? pp : 1), 1.0));
  }

  void precision() {
    const std::string said = c_.text("precision");
    if (said == "fp32") return;
    set("train.bf16", "true");  // fp16 takes the same time and memory
    // Megatron sums gradients of bf16 in fp32, and gradients of fp16 in fp16.
    const bool in_fp32 = c_.has("gradients") ? holds(c_.text("gradients"), "fp32") : software_.newer();
    const bool said_so = software_.own() && c_.has("gradients");
    if (in_fp32 && (said_so || software_.of_megatron())) set("precision.main_grads_dtype", "fp32");
    if (holds(said, "MXFP8") || said.starts_with("FP8-MX"))
      set("precision.recipe", "mxfp8");
    else if (holds(said, "NVFP4"))
      set("precision.recipe", "nvfp4");
    else if (holds(said, "1x128"))
      set("precision.recipe", "deepseek_v3");
    else if (holds(said, "rowwise"))
      set("precision.recipe", "fp8_rowwise");
    else if (holds(said, "FP8") || holds(said, "fp8"))
      set("precision.recipe", "fp8_current");
  }

  RowReader c_;
  MeasuredRun& run_;
  RowSoftware software_{c_, run_.source};
};

MeasuredFigures figures_of(const Json& row) {
  const RowReader m(row.at("measured")), c(row.at("config"));
  MeasuredFigures out;
  for (const char* key : {"step_time_s", "derived_step_time_s"})
    if (!out.step_s) out.step_s = m.positive(key);
  const auto gpus = c.number("gpus"), seq = c.number("seq");
  if (!out.step_s && gpus && seq && (c.number("global_batch") || c.has("local_batch"))) {
    const double sequences = global_batch_of(c);
    if (const auto rate = m.positive("tokens_per_s_per_gpu")) out.step_s = sequences * *seq / (*rate * *gpus);
    if (const auto rate = m.positive("samples_per_gpu_s")) out.step_s = sequences / (*rate * *gpus);
  }
  if (const auto mfu = m.positive("mfu_pct"); mfu && !out.step_s) out.mfu = *mfu / 100;
  if (const auto gb = m.positive("peak_memory_GB")) out.peak_bytes = *gb * 1e9;
  out.static_bytes = m.positive("static_bytes");
  const std::string source = row.value("source", std::string());
  // These report the memory of tensors.
  const RowSoftware software(c, source);
  out.reserved = !software.of_zero_bubble() && !software.own();
  out.first_stage = holds(source, "Nanotron");  // its benchmarks record rank 0
  out.on_device = m.positive("device_memory_GiB").has_value();
  if (const auto gib = m.positive("device_memory_GiB")) out.peak_bytes = *gib * 1024 * 1024 * 1024;
  out.last_stage_peak_bytes = m.positive("last_stage_peak_bytes");
  if (const auto gib = m.positive("peak_memory_GiB")) out.peak_bytes = *gib * 1024 * 1024 * 1024;
  return out;
}

MeasuredRun read_row(const Json& row, size_t index) {
  MeasuredRun run;
  run.id = "row " + std::to_string(index);
  if (row.contains("id") && row["id"].is_string()) run.id = row["id"].get<std::string>();
  if (row.contains("source") && row["source"].is_string()) run.source = row["source"].get<std::string>();
  if (!row.contains("config") || !row["config"].is_object() || !row.contains("measured") ||
      !row["measured"].is_object()) {
    run.left_out = "the row is not a run: it has no config and measured";
    return run;
  }
  run.measured = figures_of(row);
  RowPlan(row, run).settle();
  for (const char* same : {"container", "network", "machine_state", "deterministic"})
    if (row["config"].contains(same)) run.conditions += row["config"][same].dump() + " ";
  if (row.contains("left_out")) run.left_out = row["left_out"].get<std::string>();
  if (run.left_out.empty() && !run.measured.step_s && !run.measured.mfu && !run.measured.peak_bytes &&
      !run.measured.static_bytes)
    run.left_out = "nothing that a plan predicts was measured";
  return run;
}

std::vector<MeasuredRun> runs_of(const Json& file, const std::string& path) {
  const std::vector<Json> rows = file.is_discarded() ? std::vector<Json>() : measured_rows(file);
  RANKLAB_CHECK(!rows.empty(), ErrorKind::kBadFile, .where = path, .what = "the file has no rows of measured runs",
                .got = "other contents", .want = "a JSON list of objects with \"config\" and \"measured\"",
                .fix = "see docs/planner.md for the format");
  std::vector<MeasuredRun> runs;
  for (size_t i = 0; i < rows.size(); ++i) runs.push_back(read_row(rows[i].is_object() ? rows[i] : Json::object(), i));
  return runs;
}

}  // namespace

std::vector<MeasuredRun> read_measured_runs(const std::string& path) {
  constexpr size_t kLimitBytes = 64 << 20;
  const std::string text = read_whole_file(path, kLimitBytes, {.where = "measured runs", .fix = "check the path"});
  try {
    return runs_of(Json::parse(text, nullptr, false), path);
  } catch (const Json::exception& error) {  // a value of another type, or a key that is missing
    throw Error(ErrorKind::kBadFile, {.where = path,
                                      .what = "a row of measured runs does not have the form of its collection",
                                      .got = error.what(),
                                      .fix = "see docs/planner.md for the format"});
  }
}

}  // namespace ranklab
