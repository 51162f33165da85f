#include "cli/generate/generate_run.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/interrupt.h"
#include "cli/common/json_output.h"
#include "cli/common/model_text.h"
#include "cli/common/pipeline_text.h"
#include "cli/generate/logits_file.h"
#include "cli/generate/saved_run.h"
#include "cli/model/saved_tokenizer.h"
#include "cli/train/console.h"
#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/files/output_file.h"
#include "core/base/shell_quote.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/runtime/engine.h"
#include "core/runtime/text/generate.h"
#include "core/runtime/text/run_scorer.h"
#include "core/runtime/text/text_codec.h"
#include "core/runtime/training_data.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// A request and what was opened for it.
struct Generation : GenerateRequest {
  std::unique_ptr<SavedModel> model = {};  // null: weights from a seed
  std::shared_ptr<TextCodec> text = {};    // null: tokens are shown as numbers
  std::vector<std::string> prompts = {};
};

struct Written {
  std::vector<int64_t> tokens;
  size_t prompt = 0;  // number of tokens that belong to the prompt
  size_t made() const { return tokens.size() - prompt; }
};

// Rank 0's results.
struct GenerateResult {
  std::vector<Written> texts;
  double first_s = 0, all_s = 0;
  int64_t cache_bytes_per_token = 0;
  size_t made() const {
    size_t tokens = 0;
    for (const Written& text : texts) tokens += text.made();
    return tokens;
  }
};

double seconds_now() { return static_cast<double>(wall_now_ns()) * 1e-9; }

// Records when the first token was ready, because its computation includes the whole prompt. Ends after a Ctrl-C.
class TimedScorer : public TokenScorer {
 public:
  explicit TimedScorer(std::unique_ptr<TokenScorer> inner) : inner_(std::move(inner)), begin_s_(seconds_now()) {}
  at::Tensor next_logits(const std::vector<int64_t>& window) override {
    stop_if_interrupted();
    at::Tensor logits = inner_->next_logits(window);
    if (first_s_ == 0) first_s_ = seconds_now() - begin_s_;
    return logits;
  }
  int64_t cache_bytes_per_token() const override { return inner_->cache_bytes_per_token(); }
  double first_s() const { return first_s_; }
  double all_s() const { return seconds_now() - begin_s_; }

 private:
  std::unique_ptr<TokenScorer> inner_;
  double begin_s_, first_s_ = 0;
};

// Uses bytes if no tokenizer is known.
std::vector<int64_t> tokens_of(const std::string& prompt, const Generation& request) {
  return request.text ? request.text->prompt(prompt) : prompt_tokens(prompt);
}

// The end tokens that the model names (as in config.json of a Hugging Face folder), or else its tokenizer's.
std::vector<int64_t> end_tokens_of(const RunPlan& plan, const Generation& request) {
  if (request.ignore_eos) return {};
  if (!plan.config.model.hf_eos_tokens.empty()) return plan.config.model.hf_eos_tokens;
  const std::optional<int64_t> own = request.text ? request.text->end_token() : std::nullopt;
  return own ? std::vector<int64_t>{*own} : std::vector<int64_t>();
}

void generate(StepContext& context, const Generation& request, GenerateResult& result) {
  const RunPlan& plan = context.plan;
  if (!works_on_text(context.ctx, plan)) return;
  const NoCostScope no_cost;
  context.model.set_training(false);
  TimedScorer scorer(make_run_scorer(context));
  std::vector<Written> texts;
  for (const std::string& text : request.prompts) {
    const std::vector<int64_t> prompt = tokens_of(text, request);
    if (!request.logits_path.empty()) write_logits(context, prompt, request.logits_path);
    texts.push_back({generate_tokens(scorer, prompt,
                                     {.tokens = request.tokens,
                                      .temperature = request.temperature,
                                      .top_k = request.top_k,
                                      .top_p = request.top_p,
                                      .end_tokens = end_tokens_of(plan, request),
                                      .seq_length = plan.config.model.seq_length,
                                      .seed = plan.config.seed}),
                     prompt.size()});
  }
  if (context.ctx.global_rank() != 0) return;
  result = {std::move(texts), scorer.first_s(), scorer.all_s(), scorer.cache_bytes_per_token()};
}

// Trains first; without training steps it builds only the model, without gradients or optimizer.
void run_ranks(const RunPlan& plan, const std::shared_ptr<World>& world, const Generation& request,
               GenerateResult& result) {
  if (plan.config.train_iters > 0) {
    RuntimeEngine engine(default_components(world, plan), plan);
    engine.set_stop_request([] { return interrupt_requested(); });
    engine.set_finale([&](StepContext& context) { generate(context, request, result); });
    if (world->has_rank_zero())
      engine.add_hook(make_console_hook(
          {.log_interval = plan.config.log_interval, .gemm = "", .log_dir = "", .trace_path = "", .out = stderr}));
    engine.fit();
    return;
  }
  run_saved_model(plan, world, request.model.get(), [&](StepContext& step) { generate(step, request, result); });
}

std::string weights_text(const TrainConfig& c) {
  const std::string seed = "seed " + std::to_string(c.seed);
  if (!c.load.empty())
    return "weights of " + c.load + (c.train_iters == 0 ? "" : ", trained to step " + std::to_string(c.train_iters));
  return c.train_iters == 0
             ? "untrained weights of " + seed + " (--train-iters N trains them first)"
             : strprintf("weights of %s after %ld steps", seed.c_str(), static_cast<long>(c.train_iters));
}

// The size that a cache of the keys and values of all heads would have on this rank.
int64_t whole_cache_bytes(const RunPlan& plan) {
  const ModelConfig& m = plan.config.model;
  const int64_t head = m.mla.query_head_dim() + m.mla.v_head_dim;
  const int64_t element = plan.config.element_bytes();
  return m.softmax_layer_count() * (m.num_attention_heads / plan.config.parallel.tp) * head * element;
}

void print_text(const RunPlan& plan, const Generation& request, const GenerateResult& result) {
  const ModelConfig& m = plan.config.model;
  for (const Written& text : result.texts) {
    if (request.text) {
      std::printf("%s\n\n", request.text->shown(text.tokens).c_str());
    } else {  // there is no tokenizer for this vocabulary
      std::printf("%s\n\n", join(std::span<const int64_t>(text.tokens), " ").c_str());
    }
  }
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  const size_t made = result.made();
  std::string cache = bytes(result.cache_bytes_per_token) + " a token on a rank";
  if (m.remembers())
    cache += ", " + human_bytes(remembered_bytes(plan) / plan.config.parallel.tp) + " a sequence of " +
             (m.mamba_layer_count() == 0    ? "linear attention"
              : m.linear_layer_count() == 0 ? "Mamba-2"
                                            : "linear attention and Mamba-2");
  if (m.mla.enabled()) cache += ", keys and values of its heads would be " + bytes(whole_cache_bytes(plan));
  std::printf("%s, %s, %s\n", run_model_text(plan.config).c_str(), weights_text(plan.config).c_str(),
              layout_text(plan, true).c_str());
  std::printf("%zu tokens in %.2f s: %.0f tokens/s, the first after %.1f ms; cache %s\n", made, result.all_s,
              static_cast<double>(made) / result.all_s, 1e3 * result.first_s, cache.c_str());
}

nlohmann::ordered_json text_json(const Generation& request, const Written& text) {
  return {{"text", request.text ? nlohmann::ordered_json(request.text->shown(text.tokens)) : nullptr},
          {"tokens", text.tokens},
          {"prompt_tokens", text.prompt},
          {"generated_tokens", text.made()}};
}

void print_json(const RunPlan& plan, const Generation& request, const GenerateResult& result) {
  nlohmann::ordered_json data = {
      {"preset", plan.config.load.empty() ? nlohmann::ordered_json(plan.config.preset) : nlohmann::ordered_json()},
      {"layout", layout_text(plan, true)},
      {"seed", plan.config.seed},
      {"loaded", plan.config.load},
      {"trained_steps", plan.config.train_iters}};
  if (request.prompt_file.empty()) {
    data.update(text_json(request, result.texts[0]));
  } else {
    data["texts"] = nlohmann::ordered_json::array();
    for (const Written& text : result.texts) data["texts"].push_back(text_json(request, text));
  }
  data["wall_s"] = result.all_s;
  data["first_token_s"] = result.first_s;
  data["tokens_per_s"] = static_cast<double>(result.made()) / result.all_s;
  data["cache_bytes_per_token"] = result.cache_bytes_per_token;
  if (plan.config.model.remembers())
    data["linear_memory_bytes_per_sequence"] = remembered_bytes(plan) / plan.config.parallel.tp;
  if (plan.config.model.mla.enabled()) data["uncompressed_cache_bytes_per_token"] = whole_cache_bytes(plan);
  std::fputs(json_result(data).c_str(), stdout);
}

// RETURNS: prompts without line ends.
std::vector<std::string> prompts_of(const GenerateRequest& request) {
  if (request.prompt_file.empty()) return {request.prompt};
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  std::string text = read_whole_file(request.prompt_file, kMostBytes,
                                     {.where = "--prompt-file", .fix = "pass a text file with one prompt per line"});
  text.erase(0, byte_order_mark(text));
  std::istringstream file(std::move(text));
  std::vector<std::string> prompts;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    RANKLAB_CHECK(!line.empty(), ErrorKind::kBadFile, .where = "--prompt-file",
                  .what = strprintf("line %zu of ", prompts.size() + 1) + quote(request.prompt_file) + " is empty",
                  .got = "no prompt", .want = "at least one byte", .fix = "remove the line");
    prompts.push_back(std::move(line));
  }
  RANKLAB_CHECK(!prompts.empty(), ErrorKind::kBadFile, .where = "--prompt-file",
                .what = quote(request.prompt_file) + " is empty", .got = "no prompt", .want = "one prompt per line",
                .fix = "pass another file");
  return prompts;
}

void check_logits_path(const Generation& request, const std::string& load) {
  if (request.logits_path.empty()) return;
  std::vector<std::string> inputs;
  if (request.model) inputs = {load, request.model->tensors->where()};
  check_output({.path = request.logits_path,
                .option = "--print-logits",
                .inputs = inputs,
                .own = [&] { return is_logits_file(request.logits_path); },
                .force = request.force});
}

void check_known(int64_t token, const RunPlan& plan) {
  RANKLAB_CHECK(token < plan.config.model.vocab_size, ErrorKind::kInvalidArgument, .where = "generate",
                .what = "the prompt contains a token outside the model's vocabulary", .got = std::to_string(token),
                .want = "below --vocab-size " + std::to_string(plan.config.model.vocab_size),
                .fix = "pass the tokenizer of the model's data to --tokenizer");
}

// Rejects, before any rank starts, a prompt with tokens that are not in the model's vocabulary.
void choose_text(const RunPlan& plan, Generation& request, const std::string& load) {
  std::optional<Tokenizer> tokenizer;
  if (!request.tokenizer.empty())
    tokenizer = open_tokenizer(request.tokenizer);
  else if (request.model)
    tokenizer = request.model->checkpoint ? tokenizer_of(*request.model->checkpoint) : find_tokenizer(load);
  else if (plan.config.train_iters > 0 && !plan.config.mock_data)
    tokenizer = tokenizer_of_data(plan.config);
  request.text = make_text_codec(std::move(tokenizer), plan.config.model.vocab_size);
  for (const std::string& prompt : request.prompts)
    for (const int64_t token : tokens_of(prompt, request)) check_known(token, plan);
}

}  // namespace

int run_generate(ConfigOptions& options, const GenerateRequest& wanted, const std::string& load) {
  Generation request{wanted};
  request.prompts = prompts_of(wanted);
  request.model = take_saved_model(options, load, ModelUse::kTrainsIfAsked);
  check_logits_path(request, load);
  TrainConfig config = options.config();
  config.load = load;
  RANKLAB_CHECK(!request.model || request.model->checkpoint || config.train_iters == 0, ErrorKind::kInvalidArgument,
                .where = "--load", .what = "a Hugging Face folder has no state to resume training from",
                .got = quote(load), .want = "a checkpoint, or no --train-iters",
                .fix = "ranklab ckpt import-hf " + shell_path(load) + " OUT, then --load OUT");
  watch_interrupts();
  const auto [plan, world] =
      ready_run(options, std::move(config), [&](const RunPlan& ready) { choose_text(ready, request, load); });
  GenerateResult result;
  try {
    run_ranks(plan, world, request, result);
  } catch (const Error& error) {
    if (is_caused_by_interrupt(error)) return interrupt_exit_code();
    throw;
  }
  if (interrupt_requested()) return interrupt_exit_code();
  if (!world->has_rank_zero()) return 0;
  request.json ? print_json(plan, request, result) : print_text(plan, request, result);
  return 0;
}

}  // namespace ranklab
