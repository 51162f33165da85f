#include "cli/config/megatron_line.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>

#include "cli/config/megatron_batches.h"
#include "cli/config/megatron_data.h"
#include "cli/config/megatron_differences.h"
#include "cli/config/megatron_hybrid.h"
#include "cli/config/megatron_pipeline.h"
#include "cli/config/megatron_precision.h"
#include "cli/config/megatron_words.h"
#include "core/base/text.h"
#include "core/checkpoint/run_folder.h"
#include "core/spec/layer_pattern.h"
#include "core/spec/megatron_sizes.h"

namespace ranklab {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kDefault = "default of Megatron-LM";
constexpr int64_t kMostSize = kMostMegatronSize;
constexpr int64_t kMostPositions = 1 << 24;  // positions in a sequence, and tokens in a vocabulary

class Reader {
 public:
  explicit Reader(const Words& words) : words_(words) { out_.left_out = megatron_differences(words_); }

  ForeignConfig read() {
    set_defaults(megatron_defaults());
    for (const auto& [flag, given] : words_.flags()) take(flag, given);
    model();
    vocabulary();
    if (words_.has("--multi-latent-attention")) latent();
    if (words_.has("--num-experts")) experts();
    layout();
    batch_and_steps();
    precision();
    data_and_checkpoints();
    for (auto& [key, setting] : settings_) out_.settings.push_back(std::move(setting));
    return std::move(out_);
  }

 private:
  void set(const std::string& key, const std::string& value, const std::string& flag = kDefault) {
    settings_[key] = {key, value, flag};
  }
  void set(const std::string& key, int64_t value, const std::string& flag = kDefault) {
    set(key, std::to_string(value), flag);
  }
  void set_default(const std::string& key, const std::string& value) {
    if (!settings_.contains(key)) set(key, value);
  }
  void set_defaults(std::span<const char* const> assignments) {
    for (const char* one : assignments) {
      const ConfigSetting setting = assignment_setting(one);
      set_default(setting.key, setting.text);
    }
  }
  void drop(const std::string& key) { settings_.erase(key); }
  void leave_out(const std::string& flag, const std::string& why) { out_.left_out.push_back(flag + ": " + why); }
  int64_t number_or(const std::string& flag, int64_t other) const {
    return words_.number(flag, kMostSize).value_or(other);
  }
  std::optional<int64_t> count(const std::string& flag) const { return words_.number(flag, int64_t{1} << 53); }
  int64_t needed(const std::string& flag, int64_t most = kMostSize) const {
    const auto value = words_.number(flag, most);
    if (!value || *value == 0)
      refuse_megatron(flag + " is missing", "", "a number above 0", "add it, as Megatron-LM asks for it");
    return *value;
  }

  void take(const std::string& flag, const MegatronWords::Given& given) {
    if (given.foreign == nullptr) {
      const bool switched = given.own->kind == ConfigField::Kind::kFlag;
      return set(given.own->key, switched ? "true" : join(given.values, " "), flag);
    }
    switch (given.foreign->fate) {
      case MegatronFate::kSet: {
        const ConfigSetting setting = assignment_setting(given.foreign->text);
        return set(setting.key, setting.text, flag);
      }
      case MegatronFate::kLeftOut:
        return leave_out(flag, given.foreign->text);
      case MegatronFate::kRefused:
        refuse_megatron("ranklab does not compute what " + flag + " says", join(given.values, " "), "a line without it",
                        given.foreign->text);
      case MegatronFate::kRead:
      case MegatronFate::kNoEffect:
        return;
    }
  }

  void layers() {
    const auto pattern = settings_.find("model.hybrid_layer_pattern");
    const bool hybrid = pattern != settings_.end();
    if (words_.has("--spec") && !hybrid)
      refuse_megatron("ranklab does not compute what --spec says", words_.text("--spec").value_or(""),
                      "a line without it", "leave it out: layers are chosen by the model's settings");
    if (hybrid) {
      const ConfigSetting given = pattern->second;
      hybrid_ = read_megatron_hybrid(given.text, given.origin, words_.has("--num-experts"));
      for (const ConfigSetting& setting : hybrid_.settings) settings_[setting.key] = setting;
      if (!words_.has("--num-layers")) set("model.num_layers", hybrid_.layers, given.origin);
    }
    layers_ = hybrid && !words_.has("--num-layers") ? hybrid_.layers : needed("--num-layers");
    if (layers_ > kMostLayers)
      refuse_megatron("--num-layers is out of range", std::to_string(layers_), "1 to 65536", "correct it");
  }

  void model() {
    layers();
    hidden_ = needed("--hidden-size");
    mlp();
    attention();
    const int64_t table = words_.number("--max-position-embeddings", kMostPositions).value_or(0);
    const int64_t seq = needed("--seq-length", kMostPositions);
    if (settings_.at("model.position").text == "learned_absolute" && table > seq)
      leave_out("--max-position-embeddings", "there are as many positions as a sequence has");
  }

  void mlp() {
    const bool swiglu = words_.has("--swiglu"), biased = settings_.at("model.add_bias").text == "true";
    if (!words_.has("--ffn-hidden-size"))
      set("model.ffn_hidden_size", static_cast<int64_t>(megatron_ffn(static_cast<double>(hidden_), swiglu)));
    // Megatron-LM's fused bias-GELU computes the tanh form, its unfused GELU the exact form.
    const bool tanh = words_.has("--openai-gelu") || (biased && !words_.has("--no-bias-gelu-fusion"));
    if (words_.has("--quick-geglu") || !words_.is("--activation-func-clamp-value", 0) ||
        !words_.is("--glu-linear-offset", 0)) {
      gpt_oss_gate();
    } else if (swiglu) {
      set("model.activation", "swiglu", "--swiglu");
    } else if (words_.has("--squared-relu")) {
      set("model.activation", "squared_relu", "--squared-relu");
    } else {
      set("model.activation", tanh ? "gelu" : "gelu_erf");
    }
  }

  void gpt_oss_gate() {
    const char *bound = "--activation-func-clamp-value", *offset = "--glu-linear-offset";
    if (!words_.has("--quick-geglu") || !words_.is(bound, 7) || !words_.is(offset, 1))
      refuse_megatron("gates can be clamped here only as in gpt-oss",
                      join(Words{words_.has("--quick-geglu") ? "--quick-geglu" : "no --quick-geglu", bound,
                                 words_.text(bound).value_or("0"), offset, words_.text(offset).value_or("0")},
                           " "),
                      "--quick-geglu --activation-func-clamp-value 7 --glu-linear-offset 1",
                      "use these, or none of them");
    set("model.activation", "swigluoai", "--quick-geglu");
  }

  void attention() {
    const int64_t heads = needed("--num-attention-heads");
    const bool grouped = words_.has("--group-query-attention");
    set("model.num_query_groups", grouped ? number_or("--num-query-groups", 1) : 0,
        grouped ? "--num-query-groups" : kDefault);
    if (settings_.contains("model.kv_channels") &&
        settings_["model.kv_channels"].text == std::to_string(hidden_ / heads))
      drop("model.kv_channels");
    if (words_.has("--qk-layernorm") && settings_.at("model.norm").text != "RMSNorm")
      refuse_megatron("queries and keys have RMSNorms here", "--qk-layernorm with --normalization LayerNorm",
                      "--normalization RMSNorm", "leave --qk-layernorm out, or change the norm");
    window();
    positions();
  }

  // YaRN's flags apply to --position-embedding-type yarn, and to latent attention, which uses YaRN by itself
  // (latent()).
  void positions() {
    interpolation();
    if (settings_.at("model.position").text != "yarn") {
      if (!words_.has("--multi-latent-attention"))
        std::erase_if(settings_, [](const auto& one) { return one.first.starts_with("yarn."); });
      return;
    }
    set("model.position", "rope", "--position-embedding-type");
    set_default("yarn.mscale_all_dim", "0");
    // The latent-attention flags for YaRN do not apply here.
    for (const char* key : {"yarn.original_seq_length", "yarn.beta_fast", "yarn.beta_slow"}) drop(key);
    for (const auto& [flag, key] : {std::pair{"--yarn-original-max-position-embeddings", "yarn.original_seq_length"},
                                    {"--yarn-beta-fast", "yarn.beta_fast"},
                                    {"--yarn-beta-slow", "yarn.beta_slow"}})
      if (const auto text = words_.text(flag)) set(key, *text, flag);
    if (words_.has("--no-yarn-correction-range-round-to-int"))
      set("yarn.truncate", "false", "--no-yarn-correction-range-round-to-int");
  }

  // Megatron-LM divides positions by this factor; it can also stretch slow frequencies, or use YaRN, after that.
  void interpolation() {
    const char* flag = "--rotary-seq-len-interpolation-factor";
    const auto factor = words_.number(flag, kMostPositions);
    if (!factor || *factor == 1 || settings_.at("model.position").text != "rope") return;
    if (*factor == 0) refuse_megatron(std::string(flag) + " is 0", "0", "1 or more", "leave it out");
    if (settings_.contains("model.rope_scaling_type") || words_.has("--multi-latent-attention"))
      refuse_megatron("rotary frequencies can be scaled in one way only",
                      std::string(flag) + " with " +
                          (words_.has("--multi-latent-attention") ? "--multi-latent-attention" : "--use-rope-scaling"),
                      "one of them", "leave the other out");
    set("model.rope_scaling_type", "linear", flag);
    set("model.rope_scaling_factor", *factor, flag);
  }

  // "(127,0)": the number of positions before a query that it sees, and none after it.
  void window() {
    const auto text = words_.text("--window-size", "");
    if (!text) return;
    std::string dense = *text;
    std::erase_if(dense, [](char c) { return c == '(' || c == ')' || c == ' '; });
    char* end = nullptr;
    const long before = std::strtol(dense.c_str(), &end, 10);
    if (end == dense.c_str() || before < 0 || before >= kMostPositions || std::string(end) != ",0")
      refuse_megatron("--window-size is not the window of causal attention", *text, "(N,0)",
                      "write how many positions before it a token sees");
    set("model.window_size", before + 1, "--window-size");
  }

  void vocabulary() {
    if (const auto padded = words_.number("--padded-vocab-size", kMostPositions))
      return set("model.vocab_size", *padded, "--padded-vocab-size");
    const std::string tokenizer = words_.text("--tokenizer-type").value_or("GPT2BPETokenizer");
    const auto given = words_.number("--vocab-size", kMostPositions);
    if (!given && tokenizer != "GPT2BPETokenizer")
      refuse_megatron("the size of the vocabulary is not given", "--tokenizer-type " + tokenizer, "--vocab-size N",
                      "add it; the tokenizer's file says how many");
    const int64_t own =
        given ? *given + (tokenizer == "NullTokenizer" ? 1 : 0) : kGpt2Tokens;  // including an end-of-document token
    const int64_t tp = number_or("--tensor-model-parallel-size", 1),
                  divisor = words_.number("--make-vocab-size-divisible-by", kMostPositions).value_or(128);
    if (tp * divisor < 1)
      refuse_megatron("--make-vocab-size-divisible-by is not a size", "0", "1 or more", "leave it out");
    set("model.vocab_size", megatron_vocabulary(own, tp, divisor), given ? "--vocab-size, padded" : kDefault);
  }

  void latent() {
    for (const auto& [key, usual] : {std::pair{"mla.kv_lora_rank", "32"},
                                     {"mla.qk_head_dim", "128"},
                                     {"mla.qk_pos_emb_head_dim", "64"},
                                     {"mla.v_head_dim", "128"}})
      set_default(key, usual);
    drop("model.kv_channels");
    set("model.num_query_groups", 0);
    set_default("yarn.mscale_all_dim", "0");
    if (words_.text("--rope-type") == "rope") set("yarn.scaling_factor", "1", "--rope-type");
    if (settings_.contains("model.qk_norm"))
      drop("model.qk_norm");  // latent attention always has it
    else
      leave_out("--multi-latent-attention", "the compressed query and key have norms, as with --qk-layernorm");
  }

  void experts() {
    set_default("moe.topk", "2");
    set_default("moe.score", "softmax");
    if (std::atof(settings_.at("moe.aux_loss_coeff").text.c_str()) == 0) {
      set("moe.balancing", "none");
    } else {
      set_default("moe.balancing", "aux_loss");
    }
    const std::string dispatcher = words_.text("--moe-token-dispatcher-type").value_or("allgather");
    if (!words_.has("--moe-enable-deepep"))
      set("parallel.moe_dispatcher", dispatcher == "flex" ? "dedup" : dispatcher,
          words_.has("--moe-token-dispatcher-type") ? "--moe-token-dispatcher-type" : kDefault);
    // A softmax over the chosen logits equals a softmax over all, normalized over the chosen ones.
    const bool before = words_.has("--moe-router-pre-softmax") && settings_.at("moe.score").text == "softmax";
    set("moe.normalize_topk", before ? "false" : "true", before ? "--moe-router-pre-softmax" : kDefault);
    if (!before && settings_.at("moe.topk").text == "1") set("moe.normalize_top1", "true");
    set_default("parallel.etp", std::to_string(number_or("--tensor-model-parallel-size", 1)));
    if (settings_.at("model.add_bias").text == "true") set("moe.router_bias", "true");
    // A group counts with as many of its experts as a token takes of each of its groups.
    if (const auto groups = words_.number("--moe-router-group-topk", 1 << 20); groups && *groups > 0)
      set("moe.group_best", std::max<int64_t>(std::atoll(settings_.at("moe.topk").text.c_str()) / *groups, 1));
    expert_layers();
  }

  // "([0]*3+[1]*58)": layers with a 1 have experts.
  void expert_layers() {
    const std::string text = words_.text("--moe-layer-freq", "").value_or("1");
    if (text == "1") return;
    const auto pattern = parse_layer_pattern(text);
    int64_t dense = 0;
    while (pattern && dense < layers_ && !pattern->has(dense)) ++dense;
    bool rest = pattern && text.find('[') != std::string::npos && dense < layers_;
    for (int64_t layer = dense; rest && layer < layers_; ++layer) rest = pattern->has(layer);
    if (!rest) return set("moe.layer_freq", text, "--moe-layer-freq");
    set("moe.first_dense_layers", dense, "--moe-layer-freq");
  }

  void layout() {
    const int64_t tp = number_or("--tensor-model-parallel-size", 1),
                  pp = number_or("--pipeline-model-parallel-size", 1), cp = number_or("--context-parallel-size", 1);
    if (tp < 1 || pp < 1 || cp < 1)
      refuse_megatron("a size of the layout is 0", "0", "1 or more", "leave it out, or correct it");
    set("parallel.tp", tp, words_.has("--tensor-model-parallel-size") ? "--tensor-model-parallel-size" : kDefault);
    if (words_.has("--nproc-per-node")) {
      world_ = needed("--nproc-per-node") * number_or("--nnodes", 1);
      set("parallel.world_size", world_, "--nproc-per-node x --nnodes");
    } else {
      world_ = number_or("--world-size", tp * pp * cp);
      set("parallel.world_size", world_, words_.has("--world-size") ? "--world-size" : kDefault);
    }
    replicas_ = std::max<int64_t>(world_ / (tp * pp * cp), 1);
    if (const auto types = words_.text("--cp-comm-type", ",")) set("parallel.cp_comm_type", *types, "--cp-comm-type");
    set("parallel.sequence_parallel", words_.has("--sequence-parallel") && tp > 1 ? "true" : "false",
        words_.has("--sequence-parallel") ? "--sequence-parallel" : kDefault);
    if (!words_.has("--overlap-grad-reduce")) set("parallel.overlap_grad_reduce", "false");
    for (const ConfigSetting& setting : read_megatron_pipeline(words_, {layers_, hybrid_.stages}, pp, kDefault))
      settings_[setting.key] = setting;
  }

  void batch_sizes() {
    const int64_t usual = needed("--micro-batch-size") * replicas_,
                  batch = count("--global-batch-size").value_or(usual);
    const auto by_tokens = words_.text("--step-batch-size-schedule");
    if (by_tokens && !words_.has("--global-batch-size") && !words_.has("--rampup-batch-size")) {
      const MegatronBatches batches = megatron_batches(*by_tokens, needed("--seq-length", kMostPositions));
      set("train.global_batch_size", batches.last, "--step-batch-size-schedule");
      return set("train.rampup_batch_size", batches.sizes, "--step-batch-size-schedule");
    }
    if (by_tokens)
      refuse_megatron("--step-batch-size-schedule also sets the batch size", *by_tokens,
                      "no --global-batch-size and no --rampup-batch-size", "leave these out");
    if (batch < 1) refuse_megatron("--global-batch-size is 0", "0", "1 or more", "correct it");
    if (!words_.has("--global-batch-size")) set("train.global_batch_size", batch);
    if (const auto ramp = words_.text("--rampup-batch-size"))
      set("train.rampup_batch_size", *ramp, "--rampup-batch-size");
  }

  void batch_and_steps() {
    batch_sizes();
    if (words_.has("--lr-warmup-fraction") || words_.has("--lr-warmup-samples")) drop("optim.lr_warmup_iters");
    if (const auto given = words_.text("--optimizer")) {
      const std::string name = *given == "dist_muon" ? "muon" : *given;
      set("optim.optimizer", name == "adam" ? "adamw" : name, "--optimizer");
      set_defaults(megatron_optimizer_defaults(name));
    }
    if (const auto backend = words_.text("--attention-backend"))
      set("parallel.attention_backend", *backend == "local" ? "unfused" : *backend, "--attention-backend");
    recomputation();
  }

  // The outputs of norms and activations are always recomputed here.
  void recomputation() {
    const auto given = words_.flags().find("--recompute-modules");
    if (given == words_.flags().end()) return;
    Words modules;
    for (const std::string& module : given->second.values) {
      if (module == "core_attn" || module == "mlp" || module == "moe") modules.push_back(module);
      if (module == "mla_up_proj" || module == "shared_experts")
        leave_out("--recompute-modules " + module, "its outputs are kept");
    }
    if (modules.empty()) return set("memory.recompute_granularity", "none", "--recompute-modules");
    set("memory.recompute_modules", join(modules, ","), "--recompute-modules");
  }

  void precision() {
    for (ConfigSetting& setting : read_megatron_precision(words_, layers_, kDefault)) {
      if (setting.origin == kDefault)
        settings_.try_emplace(setting.key, setting);
      else
        settings_[setting.key] = std::move(setting);
    }
  }

  void data_and_checkpoints() {
    ForeignConfig data = read_megatron_data(words_, kDefault);
    for (ConfigSetting& setting : data.settings) settings_[setting.key] = std::move(setting);
    out_.left_out.insert(out_.left_out.end(), data.left_out.begin(), data.left_out.end());
    if (words_.has("--eval-iters") && words_.is("--eval-iters", 0)) {  // this is how to turn validation off there
      drop("data.eval_iters");
      set("data.eval_interval", 0, "--eval-iters");
    }
    const auto load = words_.text("--load"), save = words_.text("--save");
    if (!save) drop("checkpoint.save_interval");
    if (!save && words_.has("--save-interval")) leave_out("--save-interval", "nothing is saved without --save");
    const auto step = count("--ckpt-step");
    if (load && load == save)
      return set("checkpoint.load", step ? *load + "/" + step_folder_name(*step) : "auto",
                 step ? "--ckpt-step" : "--load");
    if (load)
      leave_out("--load", "Megatron-LM's checkpoints are imported as Hugging Face folders (ranklab ckpt import-hf)");
    drop("checkpoint.finetune");
    if (words_.has("--finetune")) leave_out("--finetune", "pass it with the --load of the imported weights");
  }

  MegatronWords words_;
  std::map<std::string, ConfigSetting> settings_;
  ForeignConfig out_;
  MegatronHybrid hybrid_;  // empty for a model without a pattern
  int64_t layers_ = 0, hidden_ = 0, world_ = 1, replicas_ = 1;
};

}  // namespace

ForeignConfig read_megatron_line(const Words& words) { return Reader(words).read(); }

}  // namespace ranklab
