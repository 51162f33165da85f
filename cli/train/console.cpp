#include "cli/train/console.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "backends/meta/meta_world.h"
#include "cli/common/interrupt.h"
#include "cli/common/pipeline_text.h"
#include "cli/common/stdout_text.h"
#include "cli/common/style.h"
#include "cli/common/terminal.h"
#include "core/base/counted.h"
#include "core/base/files/path_type.h"
#include "core/base/shell_quote.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/config/batch_choice.h"
#include "core/config/loss_scale_choice.h"
#include "core/config/traced_steps.h"
#include "core/museum/hunt.h"
#include "core/precision/precision_policy.h"
#include "core/runtime/shapes/zero_map.h"
#include "core/sim/memory_scope.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace {

constexpr const char* kHeader = "  step      loss  grad norm        lr   tokens/s";
constexpr const char* kVirtual = "  virtual ms    MFU  exposed comm  waiting";  // for simulated ranks
constexpr const char* kOnGpu = "     step ms  GPU MFU  peak memory";            // in wall time
// Columns appended for models that have these values.
constexpr const char* kPrediction = "  MTP loss";
constexpr const char* kBalance = "  busiest expert  task / aux / total / drop";
constexpr const char* kLossScale = "  loss scale";
constexpr const char* kMaxLogit = "  max logit  clipped";  // over all layers; heads clipped

class ProgressBar {
 public:
  explicit ProgressBar(bool wanted) : shown_(wanted && on_terminal(STDERR_FILENO) && on_terminal(STDOUT_FILENO)) {
    const char* term = std::getenv("TERM");
    if (term != nullptr && std::string(term) == "dumb") shown_ = false;
  }
  // `first`: the step at which a resumed run began; the remaining time is estimated from the steps since then.
  void draw(int64_t done, int64_t first, int64_t total, double elapsed_s) const {
    if (!shown_ || done <= first) return;
    constexpr int kWidest = 30;
    const double left_s = elapsed_s / static_cast<double>(done - first) * static_cast<double>(total - done);
    const std::string text =
        strprintf("%ld/%ld steps, %.0f s left", static_cast<long>(done), static_cast<long>(total), left_s);
    // clear() erases one line, so the bar must not wrap: the subtracted columns are for "  [", "] " and the last column
    // of the terminal.
    const int room = terminal_columns(80, STDERR_FILENO) - static_cast<int>(text.size()) - 6;
    if (room < 0) return;
    const int width = std::min(room, kWidest);
    const int filled = static_cast<int>(done * width / total);
    std::fprintf(stderr, "\r  [%s%s] %s", std::string(static_cast<size_t>(filled), '#').c_str(),
                 std::string(static_cast<size_t>(width - filled), ' ').c_str(), text.c_str());
    std::fflush(stderr);
  }
  void clear() const {
    if (!shown_) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  }

 private:
  bool shown_;
};

std::string mesh_text(const RunPlan& plan) {
  std::string text;
  const auto add = [&](Axis axis, const char* before) {
    if (plan.mesh.size(axis) == 1) return;
    text += (text.empty() ? "" : before) + std::string(name(axis)) + " " + std::to_string(plan.mesh.size(axis));
  };
  for (const Axis axis : {Axis::kPp, Axis::kDp, Axis::kCp}) add(axis, " x ");
  if (plan.mesh.size(Axis::kCp) > 1) text += " (" + context_text(plan) + ")";
  add(Axis::kTp, " x ");
  if (text.empty()) text = "one rank";
  if (plan.config.model.moe.enabled()) {
    const size_t dense = text.size();
    for (const Axis axis : {Axis::kEdp, Axis::kEp, Axis::kEtp}) add(axis, text.size() == dense ? "; experts " : " x ");
  }
  if (plan.sequence_parallel && plan.mesh.size(Axis::kTp) > 1) text += ", sequence parallel";
  if (plan.zero().optimizer) text += ", ZeRO stage " + std::to_string(plan.zero_stage);
  if (plan.config.grad_sync == GradSync::kMicrobatch) text += ", each microbatch reduced";
  const DilocoConfig& diloco = plan.config.diloco;
  if (const int groups = plan.mesh.size(Axis::kDpReplica); groups > 1)
    text += strprintf(diloco.enabled() ? ", %d DiLoCo replicas of dp %d" : " in %d groups of dp %d", groups,
                      plan.mesh.size(Axis::kDpShard));
  if (diloco.enabled()) text += ", outer update every " + counted(diloco.sync_steps, "step");
  if (diloco.fragments > 1) text += strprintf(" of each of %d fragments", static_cast<int>(diloco.fragments));
  return text;
}

// "mxfp8: e4m3 x e4m3, gradients e4m3; 57 of 60 linear modules"
std::string precision_text(const PrecisionPolicy& policy) {
  const LinearPrecision& linear = policy.recipe().linear;
  const auto format = [](const TensorPrecision& t) {
    return t.quantized() ? std::string(t.format->name) : std::string("as they are");
  };
  size_t quantized = 0;
  for (const ModulePrecision& module : policy.modules()) quantized += module.linear.quantized() ? 1 : 0;
  return strprintf("%s: activations %s, weights %s, gradients %s; %zu of %zu linear modules",
                   policy.recipe().name.c_str(), format(linear.activation).c_str(), format(linear.weight).c_str(),
                   format(linear.gradient).c_str(), quantized, policy.modules().size());
}

class ConsoleHook : public Hook {
 public:
  explicit ConsoleHook(ConsoleOptions options)
      : options_(std::move(options)), out_(options_.out), style_(style_for(out_)), bar_(options_.progress) {}

  void on_train_begin(const RunPlan& plan, const TrainInfo& info) override {
    const TrainConfig& c = config_ = plan.config;
    first_ = info.first_step;
    total_ = steps_of_run(plan);
    on_gpu_ = info.on_gpu;
    wants_sample_ = c.sample_tokens > 0;
    simulated_ = c.can(Capability::kVirtualTime) && c.virtual_time;
    predicts_ = c.model.mtp_num_layers > 0;
    balances_ = c.model.moe.enabled();
    scales_ = loss_scale_rule(c).has_value();
    measures_logits_ = c.qk_clip || c.log_max_attention_logit;
    begin_ns_ = wall_now_ns();
    std::fprintf(out_, "%s\n", style_.bold(model_title(plan, info.parameters)).c_str());
    if (!c.inject.empty())
      line("INJECTED", style_.red(c.inject + ": this run is wrong on purpose (" + story_command(c.inject) + ")"));
    line("world", info.world);
    line("mesh", mesh_text(plan));
    if (plan.schedule.num_stages() > 1) line("pipeline", pipeline_text(plan));
    if (plan.precision && plan.precision->quantizes()) line("products", precision_text(*plan.precision));
    line("batch", counted(c.global_batch_size, "sequence") + " = dp " + std::to_string(plan.dp()) + " x " +
                      counted(plan.num_microbatches, "microbatch", "es") + " of " +
                      std::to_string(plan.micro_batch_size) + "; " + counted(plan.tokens_per_step(), "token") +
                      " a step" + ramp_text(plan));
    line("data", info.data);
    if (!info.loaded.empty()) line("loaded", info.loaded);
    if (simulated_) line("profile", plan.profile.title + " (virtual times)");
    if (!options_.gemm.empty()) line("gemm", options_.gemm);
    if (const std::string none = no_step_text(c, first_, total_); !options_.trace_path.empty() && !none.empty())
      line("trace", style_.yellow(none));
    if (c.zero_debug) {
      for (const std::string& piece : zero_debug_lines(plan, make_meta_world))
        std::fprintf(out_, "%s\n", piece.c_str());
    }
    std::string header = kHeader;
    if (simulated_) header += kVirtual;
    if (on_gpu_) header += kOnGpu;
    if (predicts_) header += kPrediction;
    if (balances_) header += kBalance;
    if (measures_logits_) header += kMaxLogit;
    if (scales_) header += kLossScale;
    std::fprintf(out_, "\n%s\n", style_.bold(header).c_str());
    std::fflush(out_);
  }

  void on_step_end(const StepMetrics& m) override {
    book_ = thread_memory_book();
    bar_.clear();
    if (m.step % options_.log_interval == 0 || m.step + 1 == total_) row(m);
    if (m.sentinels) alarms(*m.sentinels);
    bar_.draw(m.step + 1, first_, total_, static_cast<double>(wall_now_ns() - begin_ns_) * 1e-9);
  }

  void on_validation(int64_t step, double loss) override {
    bar_.clear();
    std::fprintf(out_, "%s\n",
                 style_.cyan(strprintf("%6ld  %8.4f  validation", static_cast<long>(step), loss)).c_str());
    std::fflush(out_);
  }

  void on_checkpoint(const CheckpointNote& note) override {
    bar_.clear();
    std::fprintf(out_, "%s\n", style_.dim(checkpoint_text(note)).c_str());
    std::fflush(out_);
  }

  void on_train_end(const TrainResult& result) override {
    bar_.clear();
    std::fprintf(out_, "\n%s %s\n",
                 (!result.stopped.empty() ? style_.yellow("stopped by a sentinel")
                  : result.interrupted    ? style_.yellow("interrupted")
                                          : style_.green("done"))
                     .c_str(),
                 steps_text(result).c_str());
    if (!result.sample.empty()) std::fprintf(out_, "\nsample:\n%s\n\n", result.sample.c_str());
    if (result.sample.empty() && wants_sample_ && !result.interrupted && result.stopped.empty()) {
      std::fprintf(out_, "\nno sample: the data has no tokenizer, and text as bytes needs --vocab-size 256\n\n");
    }
    if (book_ && simulated_ && result.steps_done > first_) line("memory", memory_text());
    if (!options_.log_dir.empty()) line("log", options_.log_dir);
    if (!options_.trace_path.empty() && traces_a_step(config_, first_, result.steps_done) &&
        is_there(options_.trace_path))  // otherwise another line says what became of it
      line("trace", options_.trace_path + " (ranklab viz " + shell_path(options_.trace_path) + ", or Perfetto)");
    for (const std::string& reason : options_.lost->said()) line("lost", reason);
    flush();
  }

 private:
  // "after 200 steps in 24.1 s: loss 5.5114 -> 1.6404". Losses and time are only of this start, so a resumed run says
  // which steps these were.
  std::string steps_text(const TrainResult& result) const {
    const int64_t trained = result.steps_done - first_;
    if (trained <= 0 && first_ > 0)
      return strprintf("at step %ld of %s: no step was left to train", static_cast<long>(first_),
                       run_length_text(config_).c_str());
    if (trained <= 0) return strprintf("after 0 steps in %.1f s", result.total_wall_s);
    const std::string of_this_start =
        first_ == 0 ? "" : strprintf(", %ld since the checkpoint", static_cast<long>(trained));
    return strprintf("after %s%s in %.1f s: loss %.4f -> %.4f", counted(result.steps_done, "step").c_str(),
                     of_this_start.c_str(), result.total_wall_s, result.first_loss, result.last_loss);
  }

  // Rank 0's memory at its peak by category, the largest first.
  std::string memory_text() const {
    std::vector<std::pair<int64_t, std::string_view>> parts;
    for (size_t i = 0; i < static_cast<size_t>(MemoryCategory::kCount); ++i) {
      const auto category = static_cast<MemoryCategory>(i);
      if (book_->bytes_at_peak(category) > 0) parts.emplace_back(book_->bytes_at_peak(category), name(category));
    }
    std::sort(parts.rbegin(), parts.rend());
    std::string text = "rank 0 at its peak " + human_bytes(static_cast<double>(book_->peak_bytes()));
    for (size_t i = 0; i < parts.size(); ++i)
      text += (i == 0 ? ": " : ", ") + std::string(parts[i].second) + " " +
              human_bytes(static_cast<double>(parts[i].first));
    return text;
  }

  // Prints the sentinels that begin to fire; sentinels.jsonl also has the others.
  void alarms(const SentinelReport& report) const {
    for (const SentinelAlarm& alarm : report.alarms) {
      if (alarm.begins) std::fprintf(out_, "%s\n", style_.yellow("        sentinel " + alarm.text()).c_str());
    }
    flush();
  }

  void row(const StepMetrics& m) const {
    std::fprintf(out_, "%6ld  %8.4f  %9.4f  %8.2e  %9.0f", static_cast<long>(m.step), m.loss, m.grad_norm, m.lr,
                 m.tokens_per_s);
    if (simulated_) {
      std::fprintf(out_, "  %10.3f  %4.1f%%  %11.1f%%  %6.1f%%", m.virtual_step_ms, 100 * m.mfu,
                   100 * m.exposed_comm_fraction, 100 * m.peer_wait_fraction);
    }
    if (on_gpu_) {
      const std::string mfu = m.wall_mfu > 0 ? strprintf("%.1f%%", 100 * m.wall_mfu) : "-";
      std::fprintf(out_, "  %10.2f  %7s  %11s", m.step_wall_ms, mfu.c_str(),
                   human_bytes(static_cast<double>(m.peak_memory_bytes)).c_str());
    }
    if (predicts_) std::fprintf(out_, "  %8.4f", m.mtp_loss);
    if (balances_) {
      std::fprintf(out_, "  %7.2f x mean  %.4f / %.4f / %.4f / %.2f%%", m.moe_max_over_mean, m.loss,
                   m.moe_aux_loss + m.moe_z_loss, m.total_loss, 100 * m.moe_dropped_fraction);
    }
    if (measures_logits_)
      std::fprintf(out_, "  %9.4g  %7ld", m.max_attention_logit.value_or(0), static_cast<long>(m.clipped_heads));
    if (scales_) std::fprintf(out_, "  %10.9g%s", m.loss_scale, m.skipped ? "  overflow, skipped" : "");
    std::fputc('\n', out_);
    if (m.zero)
      std::fprintf(out_, "[ZeRO Debug][step=%ld] rank 0 %s\n", static_cast<long>(m.step), m.zero->text().c_str());
    flush();
  }
  // Errors are ignored if stderr is closed, because then nobody wants its output; stdout is what a user keeps.
  void flush() const {
    const std::string lost = lost_text(out_);
    if (!lost.empty() && out_ == stdout && !reader_is_gone()) options_.lost->note("stdout", lost);
  }
  void line(const char* label, const std::string& text) const {
    std::fprintf(out_, "  %s %s\n", style_.dim(strprintf("%-8s", label)).c_str(), text.c_str());
  }

  ConsoleOptions options_;
  TrainConfig config_;
  FILE* out_;
  Style style_;
  ProgressBar bar_;
  int64_t first_ = 0, total_ = 0;
  bool wants_sample_ = false;
  bool simulated_ = true, on_gpu_ = false;
  bool predicts_ = false, balances_ = false, scales_ = false, measures_logits_ = false;
  int64_t begin_ns_ = 0;
  std::shared_ptr<MemoryBook> book_;  // rank 0's; null if memory is not booked
};

}  // namespace

std::shared_ptr<Hook> make_console_hook(ConsoleOptions options) {
  return std::make_shared<ConsoleHook>(std::move(options));
}

}  // namespace ranklab
