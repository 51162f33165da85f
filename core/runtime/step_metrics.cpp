#include "core/runtime/step_metrics.h"

#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/sim/aten.h"
#include "core/sim/hardware_profile.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

enum Slot { kLoss, kTokens, kMtpLoss, kNow, kExposed, kPeerWait, kStop, kTraces, kSlots };

}  // namespace

struct MetricReducer::Sums {
  double loss = 0, tokens = 0, mtp_loss = 0, exposed_ns = 0, peer_wait_ns = 0;
  int64_t latest_ns = 0;
  double behind_ns = 0;  // sum over all ranks of the time until the latest rank is ready
  bool stop = false;
  bool traces = false;
};

double wall_peak_flops(const World& world, const RunPlan& plan) {
  const std::optional<HardwareProfile> gpu = hardware_profile_of_gpu(world.gpu_name());
  return gpu ? gpu->peak_flops(plan.config.element_dtype()) * world.gpus() : 0;
}

MetricReducer::MetricReducer(Communicator& world, RankContext& ctx, const RunPlan& plan, double peak_flops)
    : world_(world),
      ctx_(ctx),
      plan_(plan),
      flops_per_token_(plan.config.model.training_flops_per_token(plan.config.model.seq_length)),
      wall_peak_flops_(peak_flops),
      last_wall_ns_(wall_now_ns()) {}

// Every rank gathers every rank's row and adds them in rank order, so all ranks get the same bits.
MetricReducer::Sums MetricReducer::gather(const StepOutput& output, Asks asks) {
  const NoCostScope free;
  at::Tensor mine = at::empty({1, kSlots}, at::kDouble);
  double* row = mine.mutable_data_ptr<double>();
  row[kLoss] = output.loss_sum;  // 0 on pipeline ranks without a last stage
  // Context-parallel ranks all count the tokens of the same sequences, whereas the loss of each token is on one of
  // them.
  row[kTokens] = static_cast<double>(output.tokens) / ctx_.size(Axis::kCp);
  row[kMtpLoss] = output.mtp_loss_sum;
  row[kNow] = static_cast<double>(ctx_.clock().now_ns());
  row[kExposed] = static_cast<double>(ctx_.clock().exposed_total_ns());
  row[kPeerWait] = static_cast<double>(ctx_.clock().peer_wait_ns());
  row[kStop] = asks.stop ? 1 : 0;
  row[kTraces] = asks.traces ? 1 : 0;
  const at::Tensor all = world_.all_gather(mine.to(ctx_.control_device())).to(at::kCPU);
  Sums sums;
  for (int r = 0; r < world_.size(); ++r) {
    const double* other = all.const_data_ptr<double>() + r * kSlots;
    if (ctx_.mesh().coordinate(Axis::kTp, r) == 0) {  // the others in its tensor-parallel group have the same values
      sums.loss += other[kLoss];
      sums.tokens += other[kTokens];
      sums.mtp_loss += other[kMtpLoss];
    }
    sums.exposed_ns += other[kExposed];
    sums.peer_wait_ns += other[kPeerWait];
    sums.latest_ns = std::max(sums.latest_ns, static_cast<int64_t>(other[kNow]));
    sums.stop = sums.stop || other[kStop] != 0;
    sums.traces = sums.traces || other[kTraces] != 0;
  }
  sums.tokens = std::round(sums.tokens);
  for (int r = 0; r < world_.size(); ++r)
    sums.behind_ns += static_cast<double>(sums.latest_ns) - all.const_data_ptr<double>()[r * kSlots + kNow];
  return sums;
}

MetricReducer::Outcome MetricReducer::reduce(int64_t step, const StepOutput& output, double grad_norm, double lr,
                                             Asks asks) {
  const Sums sums = gather(output, asks);
  Outcome outcome;
  outcome.stop = sums.stop;
  outcome.traces = sums.traces;
  StepMetrics& m = outcome.metrics;
  m.step = step;
  m.loss = sums.loss / sums.tokens;
  m.grad_norm = grad_norm;
  m.lr = lr;
  m.tokens = static_cast<int64_t>(sums.tokens);
  const ModelConfig& model = plan_.config.model;
  if (model.mtp_num_layers > 0) m.mtp_loss = sums.mtp_loss / sums.tokens / static_cast<double>(model.mtp_num_layers);
  m.loss_scale = output.loss_scale;
  m.skipped = output.skipped;
  m.skipped_steps = output.skipped_steps;
  // includes tokens without a target, because all are computed
  const auto all_tokens = static_cast<double>(plan_.tokens_of(step));
  m.moe_aux_loss = output.report.aux_loss_sum / all_tokens;
  m.moe_z_loss = output.report.z_loss_sum / all_tokens;
  m.total_loss = m.loss + m.moe_aux_loss + m.moe_z_loss + model.mtp_loss_weight * m.mtp_loss;
  m.moe_max_over_mean = output.report.max_over_mean_load;
  m.moe_dropped_fraction = output.report.dropped_fraction;
  m.max_attention_logit = output.report.max_attention_logit;
  m.clipped_heads = output.report.clipped_heads;
  if (const auto book = thread_memory_book()) m.peak_memory_bytes = book->peak_bytes();
  const int64_t wall = wall_now_ns();
  m.step_wall_ms = static_cast<double>(wall - last_wall_ns_) * 1e-6;
  m.tokens_per_s = all_tokens / (static_cast<double>(wall - last_wall_ns_) * 1e-9);
  const double flops = flops_per_token_ * all_tokens;
  if (wall_peak_flops_ > 0) m.wall_mfu = flops / (m.step_wall_ms * 1e-3 * wall_peak_flops_);
  last_wall_ns_ = wall;
  const double virtual_ns = static_cast<double>(sums.latest_ns - last_virtual_ns_);
  if (virtual_ns > 0) {
    m.virtual_step_ms = virtual_ns * 1e-6;
    const double ranks = world_.size();
    const double peak = plan_.profile.peak_flops(plan_.config.element_dtype());
    m.mfu = flops / (virtual_ns * 1e-9 * ranks * peak);
    m.exposed_comm_fraction = (sums.exposed_ns - last_exposed_ns_) / (virtual_ns * ranks);
    m.peer_wait_fraction = (sums.peer_wait_ns - last_peer_wait_ns_) / (virtual_ns * ranks);
  }
  last_virtual_ns_ = sums.latest_ns;
  last_exposed_ns_ = sums.exposed_ns;
  last_peer_wait_ns_ = sums.peer_wait_ns;
  // so that "-nan" is not printed
  const auto unsigned_nan = [](double value) { return std::isnan(value) ? std::abs(value) : value; };
  RANKLAB_CHECK(std::isfinite(m.loss) && (std::isfinite(grad_norm) || m.skipped), ErrorKind::kNumeric,
                .where = "step " + std::to_string(step), .what = "training diverged",
                .got = strprintf("loss %g, gradient norm %g", unsigned_nan(m.loss), unsigned_nan(grad_norm)),
                .want = "finite numbers", .fix = "lower --lr, lengthen --lr-warmup-iters, or lower --clip-grad");
  return outcome;
}

double MetricReducer::mean_loss(const StepOutput& output) {
  const Sums sums = gather(output, {});
  settle(sums);
  return sums.loss / sums.tokens;
}

void MetricReducer::settle() { settle(gather({}, {})); }

// All ranks have waited for each other. Otherwise the next step would begin while the pipeline is still draining after
// the validation.
void MetricReducer::settle(const Sums& sums) {
  ctx_.clock().wait_until(sums.latest_ns, 0, Axis::kWorld);
  last_wall_ns_ = wall_now_ns();
  last_virtual_ns_ = sums.latest_ns;
  last_exposed_ns_ = sums.exposed_ns;
  last_peer_wait_ns_ = sums.peer_wait_ns + sums.behind_ns;
}

}  // namespace ranklab
