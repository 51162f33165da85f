// `ranklab bench collectives | dispatchers | cp | train | quantize | precision | kernels | hardware | overhead | memory
// | step | viz`
#include <ATen/Parallel.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/bench/bench_collectives.h"
#include "cli/bench/bench_context.h"
#include "cli/bench/bench_dispatchers.h"
#include "cli/bench/bench_hardware.h"
#include "cli/bench/bench_kernels.h"
#include "cli/bench/bench_memory.h"
#include "cli/bench/bench_overhead.h"
#include "cli/bench/bench_precision.h"
#include "cli/bench/bench_quantize.h"
#include "cli/bench/bench_step.h"
#include "cli/bench/bench_train.h"
#include "cli/bench/bench_viz.h"
#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/command_module.h"
#include "cli/common/json_output.h"
#include "cli/config/config_options.h"
#include "core/base/system.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr int kMostCount = 1'000'000;

CommandAction setup_train_bench(CommandLine& app) {
  auto options = std::make_shared<BenchTrainOptions>();
  options->program = program_path().string();
  options->peer_script = RANKLAB_SOURCE_DIR "/tests/peer/peer.py";
  app.add_option("--peer", options->peer_python,
                 "Python with torch: also time PyTorch (torchrun, Gloo, one process per rank)");
  app.add_option("--peer-script", options->peer_script, "training script of the PyTorch side")->capture_default_str();
  app.add_option("--model", options->preset, "model, with its batch and sequence length: S or M")
      ->one_of({"S", "M"})
      ->capture_default_str();
  app.add_option("--modes", options->modes, "which layouts: " + join(bench_train_modes(), ", "))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--repetitions", options->repetitions)->range(1, kMostCount)->capture_default_str();
  app.add_option("--warmup", options->warmup)->range(0, kMostCount)->capture_default_str();
  app.add_option("--steps", options->steps)->range(1, kMostCount)->capture_default_str();
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return run_bench_train(*options); };
}

CommandAction setup_step_bench(CommandLine& app) {
  struct Options {
    int warmup = 2, steps = 5;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  TrainConfig defaults;
  defaults.preset = "peer_s";
  defaults.trace = false;
  auto config = std::make_shared<ConfigOptions>(app, defaults);
  app.add_option("--warmup", options->warmup, "steps before the timed ones")
      ->range(0, kMostCount)
      ->capture_default_str();
  app.add_option("--timed-steps", options->steps, "timed steps")->range(1, kMostCount)->capture_default_str();
  app.add_flag("--json", options->json, "print an object with schema, ok and data, as all commands do");
  return [options, config] {
    const char* launched = std::getenv("BENCH_T0");
    const StepBenchResult r = run_step_bench(config->config(), options->warmup, options->steps,
                                             launched != nullptr ? std::atof(launched) : 0);
    const nlohmann::ordered_json json = {{"gemm", r.gemm},
                                         {"startup_s", r.startup_s},
                                         {"first_step_s", r.first_step_s},
                                         {"step_ms_median", r.step_ms},
                                         {"tokens_per_s", r.tokens_per_s},
                                         {"pss_mb_sum", r.pss_mb},
                                         {"warm_own_mb", r.warm_own_mb},
                                         {"last_own_mb", r.last_own_mb},
                                         {"loss_first", r.loss_first},
                                         {"step_gflop", r.limit.step_flops * 1e-9},
                                         {"gemm_gflop_per_s", r.limit.peak_flops * 1e-9},
                                         {"limit_ms", r.limit.ms()},
                                         {"limit_share", r.limit.share(r.step_ms)}};
    std::printf("%s", options->json ? json_result(json).c_str() : (json.dump() + "\n").c_str());
    return 0;
  };
}

CommandAction setup_collectives_bench(CommandLine& app) {
  auto options = std::make_shared<BenchCollectivesOptions>();
  app.add_option("--ranks", options->ranks, "ranks of the group")->range(1, 512)->capture_default_str();
  app.add_option("--sizes", options->sizes, "bytes of the full tensor, comma-separated: 4K,1M")
      ->delimiter(',')
      ->bytes()
      ->range(int64_t{1}, int64_t{1} << 40)
      ->capture_default_str();
  app.add_option("--iterations", options->iterations, "calls per cell (0: by size)")
      ->range(0, kMostCount)
      ->capture_default_str();
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return run_bench_collectives(*options); };
}

CommandAction setup_dispatchers_bench(CommandLine& app) {
  auto o = std::make_shared<BenchDispatchersOptions>();
  app.add_option("--ranks", o->ranks, "expert-parallel ranks")->range(1, 512)->capture_default_str();
  app.add_option("--gpus-per-node", o->gpus_per_node)->range(1, kMostCount)->capture_default_str();
  app.add_option("--tokens", o->tokens, "tokens per rank")->range(1, kMostCount)->capture_default_str();
  app.add_option("--hidden", o->hidden, "hidden size")->range(1, kMostCount)->capture_default_str();
  app.add_option("--experts", o->experts)->range(1, kMostCount)->capture_default_str();
  app.add_option("--topk", o->topk, "experts per token")->range(1, kMostCount)->capture_default_str();
  app.add_option("--groups", o->groups, "number of expert groups")->range(1, kMostCount)->capture_default_str();
  app.add_option("--group-topk", o->group_topk, "groups that a token may use")
      ->range(1, kMostCount)
      ->capture_default_str();
  app.add_option("--skew", o->skew, "expert e is chosen with probability proportional to (e + 1)^-skew")
      ->range(0.0, 10.0)
      ->capture_default_str();
  app.add_option("--iterations", o->iterations, "timed iterations")->range(1, kMostCount)->capture_default_str();
  app.add_option("--hardware", o->hardware, "hardware profile of the virtual times")->capture_default_str();
  app.add_flag("--json", o->json, "print one JSON object");
  return [o] { return run_bench_dispatchers(*o); };
}

CommandAction setup_context_bench(CommandLine& app) {
  auto o = std::make_shared<BenchContextOptions>();
  app.add_option("--ranks", o->ranks, "context-parallel ranks")->range(2, 512)->capture_default_str();
  app.add_option("--positions", o->positions, "positions per rank")->range(2, kMostCount)->capture_default_str();
  app.add_option("--heads", o->heads)->range(1, 65'536)->capture_default_str();
  app.add_option("--kv-heads", o->groups)->range(1, 65'536)->capture_default_str();
  app.add_option("--head-dim", o->head_dim)->range(1, 65'536)->capture_default_str();
  app.add_option("--batch", o->batch, "sequences")->range(1, 65'536)->capture_default_str();
  app.add_option("--hardware", o->hardware, "hardware profile of the virtual times")->capture_default_str();
  app.add_option("--efficiency", o->efficiency,
                 "share of the peak that attention reaches on causal triangles (FlashAttention-2: 0.337)")
      ->range(0.01, 1.0)
      ->capture_default_str();
  app.add_flag("--json", o->json, "print one JSON object");
  return [o] { return run_bench_context(*o); };
}

CommandAction setup_quantize_bench(CommandLine& app) {
  auto options = std::make_shared<BenchQuantizeOptions>();
  app.add_option("--rows", options->rows, "rows of the matrix")->range(1, kMostCount)->capture_default_str();
  app.add_option("--cols", options->cols)->range(1, 65'536)->capture_default_str();
  app.add_option("--repetitions", options->repetitions, "repetitions; the best counts")
      ->range(1, kMostCount)
      ->capture_default_str();
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return run_bench_quantize(*options); };
}

CommandAction setup_precision_bench(CommandLine& app) {
  auto options = std::make_shared<BenchPrecisionOptions>();
  TrainConfig defaults;
  defaults.preset = "deepseek_v3_tiny";
  defaults.parallel = {.world = 1};
  defaults.global_batch_size = 8;
  defaults.train_iters = 300;
  defaults.lr = 5e-4;  // the last loss of a run then depends on its recipe more than on chance
  defaults.min_lr = 5e-5;
  defaults.eval_iters = 16;
  defaults.sample_tokens = 0;
  defaults.trace = false;
  auto config = std::make_shared<ConfigOptions>(app, defaults);
  app.add_option("--recipes", options->recipes, "recipes; the first is the reference")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--seeds", options->seeds, "runs per recipe, with consecutive seeds from --seed")
      ->range(1, kMostCount)
      ->capture_default_str();
  app.add_flag("--json", options->json, "print one JSON object");
  return [options, config] { return run_bench_precision(config->config(), *options); };
}

CommandAction setup_kernels_bench(CommandLine& app) {
  auto o = std::make_shared<BenchKernelsOptions>();
  app.add_option("--device", o->device, "device")->one_of({"auto", "cpu", "cuda"})->capture_default_str();
  app.add_option("--tokens", o->tokens, "tokens per microbatch")->range(1, kMostCount)->capture_default_str();
  app.add_option("--seq-length", o->seq_length, "sequence length of attention")
      ->range(1, kMostCount)
      ->capture_default_str();
  app.add_option("--parameters", o->parameters, "parameters of AdamW and the gradient norm")
      ->range(int64_t{1}, int64_t{1} << 36)
      ->capture_default_str();
  app.add_option("--iterations", o->iterations, "timed iterations")->range(1, kMostCount)->capture_default_str();
  app.add_flag("--json", o->json, "print one JSON object");
  return [o] { return run_bench_kernels(*o); };
}

CommandAction setup_overhead_bench(CommandLine& app) {
  auto options = std::make_shared<BenchOverheadOptions>();
  app.add_option("--only", options->only, "measure only this part")
      ->one_of({kOverheadParts.begin(), kOverheadParts.end()});
  app.add_option("--repetitions", options->repetitions)->range(1, kMostCount)->capture_default_str();
  app.add_option("--steps", options->steps)->range(1, kMostCount)->capture_default_str();
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return run_bench_overhead(*options); };
}

CommandAction setup_memory_bench(CommandLine& app) {
  auto options = std::make_shared<BenchMemoryOptions>();
  options->program = program_path().string();
  app.add_option("--warmup", options->warmup, "steps before the first measurement")
      ->range(1, kMostCount)
      ->capture_default_str();
  app.add_option("--steps", options->steps, "steps between the two measurements")
      ->range(1, kMostCount)
      ->capture_default_str();
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return run_bench_memory(*options); };
}

CommandAction setup_hardware_bench(CommandLine& app) {
  auto o = std::make_shared<BenchHardwareOptions>();
  app.add_option("--out", o->out, "write the profile, for --hardware FILE.toml")->type_name("FILE.toml");
  app.add_option("--device", o->device, "device to time")->one_of({"auto", "cpu", "cuda"})->capture_default_str();
  app.add_option("--like", o->like, "on a GPU: take peaks and links from this profile (default: this GPU's profile)")
      ->type_name("PROFILE");
  app.add_flag("--quick", o->quick, "use fewer and smaller sizes");
  app.add_flag("--force", o->force, "overwrite a file that this command did not write");
  app.add_flag("--json", o->json, "print one JSON object");
  return [o] { return run_bench_hardware(*o); };
}

CommandAction setup_viz_bench(CommandLine& app) {
  auto options = std::make_shared<BenchVizOptions>();
  app.add_option("--events", options->events, "events of the generated trace")
      ->range(1, 20'000'000)
      ->capture_default_str();
  app.add_option("--frames", options->frames, "frames to draw (0: none)")->range(0, kMostCount)->capture_default_str();
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return run_bench_viz(*options); };
}

}  // namespace

CommandAction setup_bench(CommandLine& app) {
  app.require_subcommand(0, 1);
  app.footer("Examples:\n  ranklab bench collectives\n  ranklab bench train --peer /path/to/python-with-torch");
  struct Row {
    const char* name;
    const char* about;
    CommandAction (*setup)(CommandLine&);
  };
  constexpr std::array<Row, 12> kRows = {{
      {"collectives", "time every collective on each transport, in a table like nccl-tests'", setup_collectives_bench},
      {"dispatchers", "compare token dispatchers: bytes, calls and time", setup_dispatchers_bench},
      {"cp", "context-parallel attention: bytes and share of useful time of each exchange", setup_context_bench},
      {"train", "time the training step, next to PyTorch's with --peer", setup_train_bench},
      {"quantize", "time the quantization of GEMM operands, next to a memcpy", setup_quantize_bench},
      {"precision", "compare losses of the same training in several precision recipes and seeds",
       setup_precision_bench},
      {"kernels", "time the fused training kernels at llama_1b's shapes, next to ATen's and a copy",
       setup_kernels_bench},
      {"hardware", "time this machine's kernels and collectives, and write a hardware profile", setup_hardware_bench},
      {"overhead", "cost of the tracer, the virtual clock and the watchdog per step", setup_overhead_bench},
      {"memory", "memory of the process after few and after many steps, by layout", setup_memory_bench},
      {"step", "run one timed training in this process and print JSON", setup_step_bench},
      {"viz", "time loading and drawing a large trace", setup_viz_bench},
  }};
  std::vector<std::pair<CommandLine*, CommandAction>> actions;
  for (const Row& row : kRows) {
    CommandLine* sub = app.add_subcommand(row.name, row.about);
    actions.emplace_back(sub, row.setup(*sub));
  }
  return [&app, actions] {
    // Line-buffered, so that each row appears when it is printed and rows of an interrupted run are kept, also in a
    // file or a pipe.
    std::setvbuf(stdout, nullptr, _IOLBF, 1 << 14);
    for (const auto& [sub, action] : actions) {
      if (sub->parsed()) return action();
    }
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab

RANKLAB_MODULE_COMMAND(bench)
