#include "core/runtime/config_fields.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using Flags = std::vector<std::string>;

[[noreturn]] void refuse(const ConfigField& field, const std::string& text, const std::string& want) {
  const std::string nearest = nearest_name(text, field.choices);
  throw Error(ErrorKind::kInvalidArgument, {.where = "config",
                                            .what = join(field.flags, " / ") + " cannot take this value",
                                            .got = quote(text),
                                            .want = want,
                                            .fix = nearest.empty() ? "" : "did you mean " + quote(nearest) + "?"});
}

template <typename T>
T parse_number(const ConfigField& field, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    refuse(field, text, std::integral<T> ? "a whole number" : "a number");
  return value + T{0};  // minus zero is zero: TOML would read a written "-0" back as the integer 0
}

// The shortest text that reads back to the same bits.
std::string to_text(double value) {
  std::string text = strprintf("%g", value);
  for (int digits = 7; digits <= 17 && std::strtod(text.c_str(), nullptr) != value; ++digits) {
    text = strprintf("%.*g", digits, value);
  }
  return text;
}
template <std::integral T>
std::string to_text(T value) {
  return std::to_string(value);
}

// Access is a callable TrainConfig& -> T&.
template <typename Access>
auto& read(const Access& access, const TrainConfig& config) {
  return access(const_cast<TrainConfig&>(config));
}

template <typename Access>
ConfigField number(std::string group, std::string key, Flags flags, std::string help, Access access) {
  using T = std::remove_reference_t<decltype(access(std::declval<TrainConfig&>()))>;
  ConfigField field{
      std::move(key), std::move(flags), std::move(group), std::move(help), ConfigField::Kind::kValue, {}, {}, {}};
  field.type = std::integral<T> ? ConfigField::Type::kInteger : ConfigField::Type::kNumber;
  field.get = [access](const TrainConfig& config) { return to_text(read(access, config)); };
  field.set = [access, field](TrainConfig& config, const std::string& text) {
    access(config) = parse_number<T>(field, text);
  };
  return field;
}

template <typename Access>
ConfigField text(std::string group, std::string key, Flags flags, std::string help, Access access,
                 std::vector<std::string> choices = {}) {
  ConfigField field{std::move(key),
                    std::move(flags),
                    std::move(group),
                    std::move(help),
                    ConfigField::Kind::kValue,
                    std::move(choices),
                    {},
                    {}};
  field.get = [access](const TrainConfig& config) { return read(access, config); };
  field.set = [access, field](TrainConfig& config, const std::string& value) {
    if (!field.choices.empty() && std::find(field.choices.begin(), field.choices.end(), value) == field.choices.end()) {
      refuse(field, value, "one of " + join(field.choices, ", "));
    }
    access(config) = value;
  };
  return field;
}

template <typename Access>
ConfigField flag(std::string group, std::string key, Flags flags, std::string help, Access access) {
  ConfigField field{
      std::move(key), std::move(flags), std::move(group), std::move(help), ConfigField::Kind::kFlag, {}, {}, {}};
  field.type = ConfigField::Type::kBool;
  field.get = [access](const TrainConfig& config) -> std::string {
    const std::optional<bool> value = read(access, config);
    return value.has_value() ? (*value ? "true" : "false") : "auto";
  };
  field.set = [access, field](TrainConfig& config, const std::string& value) {
    if (value != "true" && value != "false") refuse(field, value, "true or false");
    access(config) = value == "true";
  };
  return field;
}

// names[i] belongs to the enumerator with value i.
template <typename Access>
ConfigField choice(std::string group, std::string key, Flags flags, std::string help, std::vector<std::string> names,
                   Access access) {
  using T = std::remove_reference_t<decltype(access(std::declval<TrainConfig&>()))>;
  ConfigField field{std::move(key),
                    std::move(flags),
                    std::move(group),
                    std::move(help),
                    ConfigField::Kind::kValue,
                    std::move(names),
                    {},
                    {}};
  field.get = [access, field](const TrainConfig& config) {
    return field.choices[static_cast<size_t>(read(access, config))];
  };
  field.set = [access, field](TrainConfig& config, const std::string& value) {
    for (size_t i = 0; i < field.choices.size(); ++i) {
      if (field.choices[i] != value) continue;
      access(config) = static_cast<T>(i);
      return;
    }
    refuse(field, value, "one of " + join(field.choices, ", "));
  };
  return field;
}

#define AT(member) \
  [](TrainConfig & c) -> auto& { return c.member; }

void add_model(std::vector<ConfigField>& rows) {
  const std::string g = "Model";
  rows.push_back(text(g, "model.preset", {"--preset"}, "model preset; later flags override its numbers", AT(preset)));
  rows.push_back(number(g, "model.num_layers", {"--num-layers"}, "transformer layers", AT(model.num_layers)));
  rows.push_back(
      number(g, "model.hidden_size", {"--hidden-size"}, "width of the residual stream", AT(model.hidden_size)));
  rows.push_back(
      number(g, "model.ffn_hidden_size", {"--ffn-hidden-size"}, "width of the MLP", AT(model.ffn_hidden_size)));
  rows.push_back(
      number(g, "model.num_attention_heads", {"--num-attention-heads"}, "query heads", AT(model.num_attention_heads)));
  rows.push_back(number(g, "model.num_query_groups", {"--num-query-groups"},
                        "key/value heads (0: as many as query heads; 1: MQA)", AT(model.num_query_groups)));
  rows.push_back(
      number(g, "model.vocab_size", {"--vocab-size"}, "tokens in the vocabulary (bytes: 256)", AT(model.vocab_size)));
  rows.push_back(number(g, "model.seq_length", {"--seq-length"}, "tokens per sequence", AT(model.seq_length)));
  rows.push_back(
      choice(g, "model.norm", {"--normalization"}, "normalization layer", {"RMSNorm", "LayerNorm"}, AT(model.norm)));
  rows.push_back(choice(g, "model.position", {"--position-embedding-type"}, "positions", {"rope", "learned_absolute"},
                        AT(model.position)));
  rows.push_back(
      choice(g, "model.activation", {"--activation"}, "MLP activation", {"swiglu", "gelu"}, AT(model.activation)));
  rows.push_back(
      number(g, "model.rope_theta", {"--rotary-base"}, "base of the rotary frequencies", AT(model.rope_theta)));
  rows.push_back(number(g, "model.dropout", {"--hidden-dropout"}, "dropout of embeddings and residual branches",
                        AT(model.dropout)));
  rows.push_back(
      number(g, "model.init_std", {"--init-method-std"}, "standard deviation of initial weights", AT(model.init_std)));
  rows.push_back(flag(g, "model.add_bias", {"--add-bias-linear"}, "biases in linear layers", AT(model.add_bias)));
  rows.push_back(
      flag(g, "model.tie_embeddings", {"--tie-embeddings"}, "output head = token embedding", AT(model.tie_embeddings)));
}

void add_parallel(std::vector<ConfigField>& rows) {
  const std::string g = "Parallelism";
  rows.push_back(number(g, "parallel.world_size", {"--world-size", "--ranks"}, "number of ranks", AT(parallel.world)));
  rows.push_back(number(g, "parallel.tp", {"--tensor-model-parallel-size", "--tp"},
                        "tensor parallel ranks (1 once tp, pp or dp is given)", AT(parallel.tp)));
  rows.push_back(number(g, "parallel.pp", {"--pipeline-model-parallel-size", "--pp"},
                        "pipeline ranks (1 once tp, pp or dp is given)", AT(parallel.pp)));
  rows.push_back(number(g, "parallel.vpp", {"--num-virtual-stages-per-pipeline-rank", "--vpp"},
                        "stages of a pipeline rank (more than 1: interleaved-1f1b, looped-bfs)", AT(virtual_stages)));
  rows.push_back(text(g, "parallel.pipeline_schedule", {"--pipeline-schedule"},
                      "order of the pipeline's work: a name (ranklab schedule list), or a CSV file",
                      AT(pipeline_schedule)));
  rows.push_back(text(g, "parallel.pipeline_layout", {"--pipeline-layout"},
                      "layers of each stage, as in 2,2,3,1 (default: even)", AT(pipeline_layout)));
  rows.push_back(
      number(g, "parallel.dp", {"--data-parallel-size", "--dp"}, "data parallel ranks (0: derived)", AT(parallel.dp)));
  rows.push_back(flag(g, "parallel.sequence_parallel", {"--sequence-parallel", "--sp"},
                      "split the sequence over tp between the linear layers (default: when tp > 1)",
                      AT(sequence_parallel)));
  rows.push_back(text(g, "parallel.order", {"--order"}, "rank order, fastest axis first", AT(parallel.order)));
  rows.push_back(text(g, "parallel.backend", {"--backend", "--distributed-backend"}, "where ranks live", AT(backend),
                      {"cpu_sim", "cuda"}));
  rows.push_back(flag(g, "parallel.overlap_grad_reduce", {"--overlap-grad-reduce"},
                      "reduce gradient buckets during backward", AT(overlap_grad_reduce)));
  rows.push_back(number(g, "parallel.ddp_bucket_bytes", {"--ddp-bucket-bytes"},
                        "gradient bucket size (0: chosen by backend)", AT(ddp_bucket_bytes)));
}

void add_training(std::vector<ConfigField>& rows) {
  const std::string g = "Training";
  rows.push_back(number(g, "train.train_iters", {"--train-iters", "--steps"}, "optimizer steps", AT(train_iters)));
  rows.push_back(number(g, "train.global_batch_size", {"--global-batch-size", "--gbs"}, "sequences per step",
                        AT(global_batch_size)));
  rows.push_back(number(g, "train.micro_batch_size", {"--micro-batch-size", "--mbs"},
                        "sequences per forward (0: global batch / dp / microbatches)", AT(micro_batch_size)));
  rows.push_back(number(g, "train.num_microbatches", {"--num-microbatches"},
                        "forwards of a dp rank per step (0: from the micro batch size, else 1; with pp, 2 pp or more)",
                        AT(num_microbatches)));
  rows.push_back(choice(g, "train.accumulation", {"--grad-accumulation"},
                        "order in which microbatch gradients are added", {"sequential", "pairwise"}, AT(accumulation)));
  rows.push_back(number(g, "train.seed", {"--seed"}, "seed of weights, data order, dropout and sampling", AT(seed)));
  rows.push_back(text(g, "train.params_dtype", {"--params-dtype"}, "type of parameters and activations",
                      AT(params_dtype), {"fp32", "fp64"}));
  rows.push_back(choice(g, "optim.optimizer", {"--optimizer"}, "optimizer", {"adamw", "sgd"}, AT(optimizer)));
  rows.push_back(number(g, "optim.lr", {"--lr"}, "peak learning rate", AT(lr)));
  rows.push_back(number(g, "optim.min_lr", {"--min-lr"}, "learning rate after decay", AT(min_lr)));
  rows.push_back(choice(g, "optim.lr_decay_style", {"--lr-decay-style"}, "shape after warm-up", {"constant", "cosine"},
                        AT(lr_decay)));
  rows.push_back(number(g, "optim.lr_warmup_iters", {"--lr-warmup-iters"},
                        "steps of linear warm-up (-1: a tenth of train-iters)", AT(lr_warmup_iters)));
  rows.push_back(number(g, "optim.lr_decay_iters", {"--lr-decay-iters"}, "steps until min-lr (0: train-iters)",
                        AT(lr_decay_iters)));
  rows.push_back(number(g, "optim.weight_decay", {"--weight-decay"}, "decoupled weight decay", AT(weight_decay)));
  rows.push_back(number(g, "optim.adam_beta1", {"--adam-beta1"}, "AdamW beta 1", AT(adam_beta1)));
  rows.push_back(number(g, "optim.adam_beta2", {"--adam-beta2"}, "AdamW beta 2", AT(adam_beta2)));
  rows.push_back(number(g, "optim.adam_eps", {"--adam-eps"}, "AdamW epsilon", AT(adam_eps)));
  rows.push_back(number(g, "optim.sgd_momentum", {"--sgd-momentum"}, "SGD momentum", AT(sgd_momentum)));
  rows.push_back(
      number(g, "optim.clip_grad", {"--clip-grad"}, "largest global gradient norm (0: no clipping)", AT(clip_grad)));
}

void add_data(std::vector<ConfigField>& rows) {
  const std::string g = "Data";
  rows.push_back(text(g, "data.path", {"--data-path"},
                      "a text file, or a folder of token shards (default: the Debian corpus)", AT(data_path)));
  rows.push_back(flag(g, "data.mock", {"--mock-data"}, "generated sentences instead of a corpus", AT(mock_data)));
  rows.push_back(number(g, "data.validation_fraction", {"--validation-fraction"},
                        "share of samples kept for validation", AT(validation_fraction)));
  rows.push_back(
      number(g, "data.eval_interval", {"--eval-interval"}, "steps between validations (0: never)", AT(eval_interval)));
  rows.push_back(number(g, "data.eval_iters", {"--eval-iters"}, "global batches per validation", AT(eval_iters)));
}

void add_simulation(std::vector<ConfigField>& rows) {
  const std::string g = "Simulation";
  rows.push_back(
      text(g, "sim.hardware", {"--hardware"}, "profile of the simulated GPU, or a .toml file", AT(hardware)));
  rows.push_back(number(g, "sim.gpus_per_node", {"--gpus-per-node"}, "GPUs that share fast links (0: the profile's)",
                        AT(gpus_per_node)));
  rows.push_back(text(g, "sim.collectives", {"--collectives"},
                      "direct: peers' buffers in place; gloo: Gloo's messages (same bits)", AT(collectives),
                      {"direct", "gloo"}));
  rows.push_back(text(g, "sim.transport", {"--transport"}, "of Gloo", AT(transport), {"inproc", "tcp"}));
  rows.push_back(number(g, "sim.hang_timeout_s", {"--hang-timeout"},
                        "seconds until a silent rank is reported (0: never)", AT(hang_timeout_s)));
  rows.push_back(number(g, "sim.rendezvous_timeout_s", {"--rendezvous-timeout"},
                        "seconds that ranks which are processes wait for each other at the start",
                        AT(rendezvous_timeout_s)));
  rows.push_back(
      number(g, "sim.threads_per_rank", {"--threads-per-rank"}, "math threads of each rank", AT(threads_per_rank)));
  rows.push_back(text(g, "sim.gemm", {"--gemm"}, "fp32 matrix multiplication: auto measures both", AT(gemm),
                      {"auto", "mkl", "onednn"}));
}

void add_output(std::vector<ConfigField>& rows) {
  const std::string g = "Output";
  rows.push_back(text(g, "log.dir", {"--log-dir"},
                      "folder for log.txt, metrics.jsonl and the trace (default: runs/<time>)", AT(log_dir)));
  rows.push_back(text(g, "log.tensorboard_dir", {"--tensorboard-dir"},
                      "folder for a TensorBoard event file (default: none)", AT(tensorboard_dir)));
  rows.push_back(number(g, "log.interval", {"--log-interval"}, "print every N steps", AT(log_interval)));
  rows.push_back(flag(g, "trace.enabled", {"--trace"}, "record the timeline", AT(trace)));
  rows.push_back(number(g, "trace.step_start", {"--trace-step-start", "--profile-step-start"}, "first traced step",
                        AT(trace_step_start)));
  rows.push_back(number(g, "trace.step_end", {"--trace-step-end", "--profile-step-end"}, "first step no longer traced",
                        AT(trace_step_end)));
  rows.push_back(number(g, "sample.tokens", {"--sample-tokens"}, "tokens of text to generate at the end (0: none)",
                        AT(sample_tokens)));
  rows.push_back(text(g, "sample.prompt", {"--sample-prompt"}, "text the sample starts from", AT(sample_prompt)));
  rows.push_back(number(g, "sample.temperature", {"--sample-temperature"}, "0: always the likeliest token",
                        AT(sample_temperature)));
}

#undef AT

std::vector<ConfigField> make_fields() {
  std::vector<ConfigField> rows;
  add_model(rows);
  add_parallel(rows);
  add_training(rows);
  add_data(rows);
  add_simulation(rows);
  add_output(rows);
  return rows;
}

}  // namespace

const std::vector<ConfigField>& config_fields() {
  static const std::vector<ConfigField> kFields = make_fields();
  return kFields;
}

void set_config_field(TrainConfig& config, const std::string& key_or_flag, const std::string& value) {
  std::vector<std::string> names;
  for (const ConfigField& field : config_fields()) {
    names.push_back(field.key);
    names.insert(names.end(), field.flags.begin(), field.flags.end());
    const bool match =
        field.key == key_or_flag || std::find(field.flags.begin(), field.flags.end(), key_or_flag) != field.flags.end();
    if (match) return field.set(config, value);
  }
  const std::string nearest = nearest_name(key_or_flag, names);
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "config",
               .what = "unknown setting",
               .got = quote(key_or_flag),
               .fix = nearest.empty() ? "see ranklab train --help" : "did you mean " + quote(nearest) + "?"});
}

}  // namespace ranklab
