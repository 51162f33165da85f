#include "cli/config/torchtitan_config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>

#include "cli/config/torchtitan_keys.h"
#include "cli/config/torchtitan_replicas.h"
#include "cli/config/torchtitan_stages.h"
#include "cli/config/torchtitan_words.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/run_folder.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

constexpr const char* kTitanDefault = "default of torchtitan";

[[noreturn]] void refuse_titan(const std::string& what, const std::string& got, const std::string& want,
                               const std::string& fix) {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "config from-torchtitan", .what = what, .got = quote(got), .want = want, .fix = fix});
}

// torchtitan's models (torchtitan/models/NAME) by name and flavor, and the preset for each.
struct Flavor {
  const char *name, *flavor, *preset;
};
constexpr Flavor kFlavors[] = {{"llama3", "8B", "llama_8b"},
                               {"llama3", "70B", "llama_70b"},
                               {"llama3", "405B", "llama_405b"},
                               {"llama4", "17bx16e", "llama4_scout"},
                               {"llama4", "17bx128e", "llama4_maverick"},
                               {"deepseek_v3", "671B", "deepseek_v3"},
                               {"qwen3", "0.6B", "qwen3_0.6b"},
                               {"qwen3", "8B", "qwen3_8b"},
                               {"qwen3", "32B", "qwen3_32b"},
                               {"qwen3", "30B-A3B", "qwen3_30b_a3b"},
                               {"qwen3", "235B-A22B", "qwen3_235b_a22b"},
                               {"gpt_oss", "20b", "gpt_oss_20b"},
                               {"gpt_oss", "120b", "gpt_oss_120b"}};

struct TitanSchedule {
  const char *name, *own;
  int stages_of_rank;  // 0: what layers_per_stage results in, or two
};
constexpr TitanSchedule kSchedules[] = {{"1f1b", "1f1b", 1},
                                        {"gpipe", "gpipe", 1},
                                        {"interleaved1f1b", "interleaved-1f1b", 0},
                                        {"loopedbfs", "looped-bfs", 0},
                                        {"zbvzerobubble", "zb-v", 2},
                                        {"dualpipev", "dualpipe-v", 2}};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

class TitanReader {
 public:
  explicit TitanReader(const std::vector<std::string>& words) : words_(words) {}

  ForeignConfig read() {
    model();
    for (const auto& [key, given] : words_.keys()) take(key, given);
    layout();
    pipeline();
    batch();
    optimizer();
    precision();
    activations();
    checkpoints();
    validation();
    if (words_.on("metrics.enable_tensorboard", false))
      set("log.tensorboard_dir", words_.text("metrics.save_tb_folder", "tb"), "metrics.save_tb_folder");
    set("data.mock", "true");
    for (auto& [key, setting] : settings_) out_.settings.push_back(std::move(setting));
    return std::move(out_);
  }

 private:
  void set(const std::string& key, const std::string& value, const std::string& from = "") {
    const TorchtitanWords::Given* given = words_.find(from);
    settings_[key] = {key, value, given == nullptr ? kTitanDefault : given->origin};
  }
  void set(const std::string& key, int64_t value, const std::string& from = "") {
    set(key, std::to_string(value), from);
  }
  void set_default(const std::string& key, const std::string& value) {
    if (!settings_.contains(key)) set(key, value);
  }
  void leave_out(const std::string& key, const std::string& why) { out_.left_out.push_back(key + ": " + why); }

  void take(const std::string& name, const TorchtitanWords::Given& given) {
    const TorchtitanKey& key = *find_torchtitan_key(name);
    if (key.fate == TorchtitanFate::kTo) {
      const std::string text = given.text == "True" ? "true" : given.text == "False" ? "false" : given.text;
      if (given.text != "None") settings_[key.text] = {key.text, text, given.origin};
    } else if (key.fate == TorchtitanFate::kLeftOut && given.text != "false" && given.text != "False" &&
               given.text != "None" && !given.text.empty()) {
      leave_out(name, key.text);
    }
  }

  void model() {
    const std::string name = words_.text("model.name", "llama3"), flavor = words_.text("model.flavor", "debugmodel");
    set("model.seq_length", 2048);
    if (name == "llama3" && flavor == "debugmodel") return debug_model();
    const auto is_it = [&](const Flavor& row) { return row.name == name && lower(row.flavor) == lower(flavor); };
    const auto row = std::ranges::find_if(kFlavors, is_it);
    if (row == std::end(kFlavors)) {
      std::vector<std::string> all = {"llama3 debugmodel"};
      for (const Flavor& one : kFlavors) all.push_back(std::string(one.name) + " " + one.flavor);
      refuse_titan("ranklab has no preset for this model of torchtitan", name + " " + flavor,
                   "one of " + join(all, ", "), "use ranklab's settings for its sizes (ranklab config show)");
    }
    set("model.preset", row->preset, "model.flavor");
    if (name == "deepseek_v3") set("mtp.num_layers", 0);
    if (words_.choice("model.norm_type", "rmsnorm", {"rmsnorm", "RMSNorm", "layernorm"}) == "layernorm")
      set("model.norm", "LayerNorm", "model.norm_type");
    if (!model_preset(row->preset).moe.enabled()) return;
    // In torchtitan, experts are balanced by a bias for each expert (load_balance_coeff), not by an auxiliary loss.
    set("moe.balancing", "none");
    set("moe.aux_loss_coeff", "0");
    set("moe.expert_bias", "true");
  }

  // torchtitan/models/llama3: dim 256, six layers, 16 heads, a tokenizer of 2048 tokens for tests.
  void debug_model() {
    for (const auto& [key, value] : {std::pair{"model.num_layers", 6},
                                     {"model.hidden_size", 256},
                                     {"model.ffn_hidden_size", 768},
                                     {"model.num_attention_heads", 16},
                                     {"model.num_query_groups", 0},
                                     {"model.vocab_size", 2048},
                                     {"model.rope_theta", 500000}})
      set(key, value, "model.flavor");
  }

  void layout() {
    const auto degree = [&](const char* axis) {
      const std::string key = std::string("parallelism.") + axis + "_degree";
      return words_.number(key, 1, 1);
    };
    tp_ = degree("tensor_parallel"), pp_ = degree("pipeline_parallel");
    const int64_t cp = degree("context_parallel"), replicas = degree("data_parallel_replicate");
    const std::string shard_key = "parallelism.data_parallel_shard_degree";
    int64_t shards = words_.number(shard_key, -1, -1);
    constexpr int64_t kMostRanks = 1 << 20;
    int64_t others = 1;  // the product of all degrees except the shards
    const auto require_in_range = [&](int64_t ranks) {
      if (ranks > kMostRanks)
        refuse_titan("the product of the degrees of parallelism is out of range", std::to_string(ranks) + " and more",
                     "at most " + std::to_string(kMostRanks) + " GPUs", "correct them");
    };
    for (const int64_t one : {tp_, pp_, cp, replicas}) require_in_range(others *= one);
    require_in_range(others * std::max<int64_t>(1, shards));
    if (shards < 0) {
      const auto gpus = words_.gpus();
      if (!gpus || *gpus % others != 0)
        refuse_titan(shard_key + " -1 takes the GPUs that are left",
                     gpus ? std::to_string(*gpus) + " GPUs" : "no number",
                     "NGPU=N, a multiple of " + std::to_string(others), "write it before the other words");
      shards = *gpus / others;
    }
    if (shards == 0) refuse_titan(shard_key + " is 0", "0", "1 or more, or -1", "correct it");
    const TitanReplicas apart = titan_replicas(words_);
    for (const auto& [key, value] : apart.settings) set(key, value, "fault_tolerance.semi_sync_method");
    dp_ = apart.groups * replicas * shards;
    set("parallel.world_size", apart.groups * others * shards, shard_key);
    set("parallel.tp", tp_, "parallelism.tensor_parallel_degree");
    set("parallel.pp", pp_, "parallelism.pipeline_parallel_degree");
    set("parallel.cp", cp, "parallelism.context_parallel_degree");
    if (cp > 1)
      set("parallel.cp_comm_type",
          words_.choice("parallelism.context_parallel_rotate_method", "allgather", {"allgather", "alltoall"}) ==
                  "alltoall"
              ? "p2p"
              : "all_gather",
          "parallelism.context_parallel_rotate_method");
    if (tp_ > 1) set("parallel.sequence_parallel", "true");
    sharding(replicas, shards * cp);
    if (settings_.contains("model.preset") && model_preset(settings_.at("model.preset").text).moe.enabled()) experts();
    // torchtitan computes in bf16 with FSDP, or with autocast, which it uses only without tensor and pipeline
    // parallelism.
    in_bf16_ = shards * cp > 1 || (tp_ == 1 && pp_ == 1);
  }

  // Experts that are not spread over ranks are split like the layers around them.
  void experts() {
    const int64_t ep = words_.number("parallelism.expert_parallel_degree", 1, 1);
    set("parallel.ep", ep, "parallelism.expert_parallel_degree");
    set("parallel.etp", ep == 1 ? tp_ : words_.number("parallelism.expert_tensor_parallel_degree", 1, 1),
        "parallelism.expert_tensor_parallel_degree");
  }

  // FSDP shards over cp, too. Parameters that are not resharded after forward stay gathered until the update.
  void sharding(int64_t replicas, int64_t shards) {
    if (shards == 1) return set("parallel.zero_stage", 0, "parallelism.data_parallel_shard_degree");
    const std::string key = "parallelism.fsdp_reshard_after_forward",
                      reshard = words_.choice(key, "default", {"default", "always", "never"});
    const bool gathers_again = reshard == "always" || (reshard == "default" && pp_ == 1);
    set("parallel.zero_stage", gathers_again ? 3 : 2, key);
    if (!gathers_again) set("parallel.overlap_param_gather", "true", key);
    if (replicas > 1) set("parallel.replicas", replicas, "parallelism.data_parallel_replicate_degree");
  }

  int64_t layers() const {
    const auto own = settings_.find("model.num_layers");
    if (own != settings_.end()) return std::stoll(own->second.text);
    return model_preset(settings_.at("model.preset").text).num_layers;
  }

  void pipeline() {
    if (pp_ == 1) return;
    const std::string file_key = "parallelism.pipeline_parallel_schedule_csv", file = words_.text(file_key, "");
    if (!file.empty()) {  // the file defines the number of stages and overrides the schedule's name
      set("parallel.pipeline_schedule", file, file_key);
      if (const auto layers = titan_stages(words_, this->layers())) set_stages(*layers);
      return;
    }
    const std::string key = "parallelism.pipeline_parallel_schedule", name = words_.text(key, "1F1B");
    const auto row =
        std::ranges::find(kSchedules, lower(name), [](const TitanSchedule& s) { return std::string(s.name); });
    if (row == std::end(kSchedules))
      refuse_titan(key + " has no counterpart", name,
                   "1F1B, GPipe, Interleaved1F1B, LoopedBFS, ZBVZeroBubble or DualPipeV",
                   "choose one of these; ranklab list schedules shows the others that are here");
    set("parallel.pipeline_schedule", row->own, key);
    const std::string each = "parallelism.pipeline_parallel_layers_per_stage";
    const bool single = row->stages_of_rank == 1;
    int64_t of_rank = single ? 1 : 2;
    const auto named = titan_stages(words_, layers());
    if (named || words_.find(each) != nullptr) {
      const int64_t count = words_.number(each, 1, 1);
      const int64_t stages = named ? static_cast<int64_t>(named->size()) : (units() + count - 1) / count;
      of_rank = stages / pp_;
      if (stages % pp_ != 0 || (row->stages_of_rank > 0 ? of_rank != row->stages_of_rank : of_rank < 2))
        refuse_titan(
            (named ? "the modules of stages make" : each + " makes") +
                " a different number of stages than the schedule has",
            std::to_string(stages) + " stages of " + std::to_string(units()) + " layers, embedding and head among them",
            single ? std::to_string(pp_) : "a multiple of " + std::to_string(pp_) + ", two a rank or more",
            "change it, or the schedule");
    }
    if (row->stages_of_rank == 0) set("parallel.vpp", of_rank, each);
    named ? set_stages(*named) : stage_layers(pp_ * of_rank);
  }

  void set_stages(const std::vector<int64_t>& layers) { set("parallel.pipeline_layout", join(layers, ",")); }

  int64_t first_less() const { return words_.number("parallelism.pipeline_parallel_first_stage_less_layers", 1); }
  int64_t last_less() const { return words_.number("parallelism.pipeline_parallel_last_stage_less_layers", 1); }
  int64_t units() const { return layers() + first_less() + last_less(); }

  // Embedding and head count as layers of the first and the last stage, respectively.
  void stage_layers(int64_t stages) {
    const int64_t least = units() / stages;
    if (stages > units() || first_less() > least || last_less() > least)
      refuse_titan("there are fewer layers than the stages need", std::to_string(layers()) + " layers",
                   std::to_string(stages) + " stages of as many as embedding and head count for, or more",
                   "lower the pipeline parallel degree");
    std::vector<std::string> each;
    for (int64_t stage = 0; stage < stages; ++stage)
      each.push_back(std::to_string(least + (stage < units() % stages ? 1 : 0) - (stage == 0 ? first_less() : 0) -
                                    (stage + 1 == stages ? last_less() : 0)));
    set("parallel.pipeline_layout", join(each, ","));
  }

  void batch() {
    const std::string key = words_.find("training.batch_size") ? "training.batch_size" : "training.local_batch_size";
    const int64_t local = words_.number(key, 8, 1);
    const int64_t global = words_.number("training.global_batch_size", -1, -1);
    set("train.global_batch_size", global > 0 ? global : local * dp_, global > 0 ? "training.global_batch_size" : key);
    const std::string micro = "parallelism.pipeline_parallel_microbatch_size";
    if (pp_ > 1)
      set("train.micro_batch_size", words_.number(micro, 1, 1), micro);
    else
      set("train.micro_batch_size", local, key);
    set_default("train.train_iters", "10000");
    if (pp_ > 1 && global > local * dp_)
      leave_out("training.global_batch_size", "its microbatches fill the pipeline once, not once for each local batch");
    set_default("log.interval", "10");
  }

  void optimizer() {
    const std::string name = words_.text("optimizer.name", "AdamW");
    if (name == "Adam") leave_out("optimizer.name Adam", "weight decay is AdamW's, apart from the gradient");
    if (name != "AdamW" && name != "Adam")
      refuse_titan("optimizer.name has no counterpart", name, "AdamW", "choose it; ranklab's others: --optimizer");
    if (words_.real("optimizer.weight_decay", 0.1) != 0)
      leave_out("optimizer.weight_decay", "norms and biases have none; in torchtitan all parameters have it");
    set_default("optim.lr", "0.0008");
    const double lr = std::strtod(settings_.at("optim.lr").text.c_str(), nullptr);
    const char* low = words_.find("lr_scheduler.lr_min") ? "lr_scheduler.lr_min" : "lr_scheduler.min_lr_factor";
    set("optim.min_lr", strprintf("%.10g", lr * words_.real(low, 0)), low);
    learning_rate(lr);
  }

  // As in torchtitan/components/lr_scheduler.py: the rate of step k is (k + 1) / warmup of the full rate, then the full
  // rate; over the last steps it decays as if the schedule had one more step, so that no step has rate 0.
  void learning_rate(double lr) {
    const bool own_length = settings_.contains("optim.lr_decay_iters");
    const int64_t steps =
        std::atoll(settings_.at(own_length ? "optim.lr_decay_iters" : "train.train_iters").text.c_str());
    const std::string key =
        words_.find("training.warmup_steps") ? "training.warmup_steps" : "lr_scheduler.warmup_steps";
    const int64_t warmup = std::min(words_.number(key, 200), steps);
    set("optim.lr_warmup_iters", std::max<int64_t>(0, warmup - 1), key);
    if (warmup > 1) set("optim.lr_warmup_init", strprintf("%.10g", lr / static_cast<double>(warmup)), key);

    const std::string ratio = "lr_scheduler.decay_ratio",
                      type = words_.choice("lr_scheduler.decay_type", "linear", {"linear", "cosine", "sqrt"});
    const double share = words_.real(ratio, 1);
    if (share < 0) refuse_titan(ratio + " is out of range", words_.text(ratio, ""), "0 to 1", "correct it");
    const double decay =
        std::min(std::nearbyint(static_cast<double>(steps) * share), static_cast<double>(steps - warmup));
    set("optim.lr_decay_style", "WSD", "lr_scheduler.decay_type");
    set("optim.lr_wsd_decay_iters", std::max<int64_t>(1, static_cast<int64_t>(decay)), ratio);
    set("optim.lr_wsd_decay_style", type == "sqrt" ? "minus_sqrt" : type, "lr_scheduler.decay_type");
  }

  void precision() {
    const std::vector<std::string> types = {"float32", "bfloat16"};
    const bool params = words_.choice("training.dtype", "float32", types) == "bfloat16";
    const bool mixed = words_.choice("training.mixed_precision_param", "bfloat16", types) == "bfloat16";
    const std::string key = "training.mixed_precision_reduce", sums = words_.choice(key, "float32", types);
    if (params) set("train.params_dtype", "bf16", "training.dtype");
    if (!params && mixed && in_bf16_) {
      set("train.bf16", "true", "training.mixed_precision_param");
      set("precision.main_grads_dtype", sums == "bfloat16" ? "bf16" : "fp32", key);
    }
    converters();
  }

  void converters() {
    const std::string key = "model.converters";
    std::istringstream all(words_.text(key, ""));
    for (std::string name; std::getline(all, name, ',');) {
      if (name == "mx" || name == "quantize.linear.mx") {
        set("precision.recipe", "mxfp8", key);
      } else if (name == "float8" || name == "quantize.linear.float8") {
        const char* recipe =
            words_.find("float8.recipe_name") ? "float8.recipe_name" : "quantize.linear.float8.recipe_name";
        const std::string scales = words_.choice(recipe, "tensorwise", {"tensorwise", "rowwise"});
        set("precision.recipe", scales == "rowwise" ? "fp8_rowwise" : "fp8_current", recipe);
      } else if (!name.empty()) {
        leave_out(key + " " + name, "experts' matrix products use the precision of the others");
      }
    }
  }

  void activations() {
    const std::string key = "activation_checkpoint.mode",
                      mode = words_.choice(key, "selective", {"none", "selective", "full"}),
                      option = words_.text("activation_checkpoint.selective_ac_option", "2");
    if (mode != "selective") return set("memory.recompute_granularity", mode, key);
    set("memory.recompute_granularity", "selective", key);
    const std::string every = "attention of every layer is recomputed, ";
    leave_out(key + " selective",
              every + (option == "op" ? "and no matrix product" : "not that of each " + option + ". layer"));
  }

  void checkpoints() {
    if (!words_.on("checkpoint.enable", words_.on("checkpoint.enable_checkpoint", false))) return;
    set("checkpoint.save", words_.text("checkpoint.folder", "checkpoint"), "checkpoint.folder");
    set("checkpoint.save_interval", words_.number("checkpoint.interval", 500, 1), "checkpoint.interval");
    set("checkpoint.keep_last", words_.number("checkpoint.keep_latest_k", 10), "checkpoint.keep_latest_k");
    const std::string step_key = "checkpoint.load_step";
    const int64_t step = words_.number(step_key, -1, -1);
    if (step < 0) return set("checkpoint.load", "auto", "checkpoint.folder");
    set("checkpoint.load", words_.text("checkpoint.folder", "checkpoint") + "/" + step_folder_name(step), step_key);
  }

  void validation() {
    const bool on = words_.on("validation.enable", words_.on("validation.enabled", false));
    set("data.eval_interval", on ? words_.number("validation.freq", 10, 1) : 0, "validation.freq");
    const int64_t steps = words_.number("validation.steps", -1, -1);
    if (on && steps > 0) set("data.eval_iters", steps, "validation.steps");
    if (on && steps <= 0) leave_out("validation.steps -1", "--eval-iters microbatches, not the whole set");
  }

  TorchtitanWords words_;
  ForeignConfig out_;
  std::map<std::string, ConfigSetting> settings_;
  int64_t tp_ = 1, pp_ = 1, dp_ = 1;
  bool in_bf16_ = true;
};

}  // namespace

ForeignConfig read_torchtitan_config(const std::vector<std::string>& words) { return TitanReader(words).read(); }

}  // namespace ranklab
