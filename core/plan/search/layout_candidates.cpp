#include "core/plan/search/layout_candidates.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/pipeline/schedules.h"

namespace ranklab {
namespace {

std::vector<int> divisors(int64_t number, int64_t most) {
  std::vector<int> found;
  for (int64_t d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) found.push_back(static_cast<int>(d));
  return found;
}

int64_t data_ranks(const TrainConfig& c, const LayoutChoice& l) {
  return int64_t{c.parallel.world} / l.tp / l.pp / l.cp;
}

bool divides(const TrainConfig& c, const LayoutChoice& l) {
  const ModelConfig& m = c.model;
  if (c.parallel.world % l.tp != 0 || c.parallel.world / l.tp % l.pp != 0 || c.parallel.world / l.tp / l.pp % l.cp != 0)
    return false;
  const int64_t dp = data_ranks(c, l);
  if (c.global_batch_size % (dp * l.micro_batch) != 0) return false;
  const int64_t microbatches = c.global_batch_size / dp / l.micro_batch;
  if (l.pp > 1 && microbatches < l.pp) return false;  // the ranks would be idle for more than half of the time
  if (m.num_attention_heads % l.tp != 0 || m.ffn_hidden_size % l.tp != 0) return false;
  const auto splits = [&](const RecurrenceHeads& recurrence) { return recurrence.heads % (int64_t{l.tp} * l.cp) == 0; };
  if (!std::ranges::all_of(m.recurrences(), splits)) return false;
  if (int64_t{l.pp} * l.virtual_stages > m.num_layers) return false;
  if (l.virtual_stages > 1 && m.num_layers % (l.pp * l.virtual_stages) != 0) return false;
  const auto group = static_cast<int>(c.microbatch_group);  // 0: as the schedule chooses
  if (l.virtual_stages > 1 && group > 0 && !is_interleaved_group(group, l.pp, static_cast<int>(microbatches)))
    return false;
  if (l.cp > 1 && m.seq_length % (int64_t{2} * l.cp * l.tp) != 0) return false;
  if (m.moe.enabled() && (m.moe.num_experts % l.ep != 0 || (dp * l.cp * l.tp) % l.ep != 0)) return false;
  return l.zero_stage < 3 || l.pp == 1;
}

struct Weights {
  double dense, experts;
};

Weights weights_of(const ModelConfig& m) {
  const auto all = static_cast<double>(m.parameter_count());
  if (!m.moe.enabled() || m.moe.topk >= m.moe.num_experts) return {all, 0};
  // parameters unused by a token: all experts but topk
  const auto idle = all - static_cast<double>(m.active_parameter_count());
  const double experts =
      idle * static_cast<double>(m.moe.num_experts) / static_cast<double>(m.moe.num_experts - m.moe.topk);
  return {all - experts, experts};
}

// Bytes of state per parameter that `replicas` ranks replicate or shard.
double state_bytes(int zero_stage, double replicas) {
  if (zero_stage == 3) return 18.0 / replicas;
  if (zero_stage == 2) return 2 + 16.0 / replicas;
  return zero_stage == 1 ? 6 + 12.0 / replicas : 18;
}

// Bytes that a layer's F keeps per token with fused norms and flash attention. Of the 16-bit inputs and outputs of
// linear layers, some are recomputed or shared, and for experts some are kept twice.
struct KeptBytes {
  double whole, without_attention;
};

KeptBytes kept_bytes(const ModelConfig& m) {
  constexpr double kOfDense = 1.5, kOfExperts = 1.85;  // from plans of llama_8b and deepseek_v3
  const auto hidden = static_cast<double>(m.hidden_size), heads = static_cast<double>(m.num_attention_heads);
  const double queries =
      m.mla.enabled() ? heads * static_cast<double>(m.mla.query_head_dim()) : static_cast<double>(m.query_width());
  // the same width as the outputs
  const double values = m.mla.enabled() ? heads * static_cast<double>(m.mla.v_head_dim) : queries;
  const double keys = m.mla.enabled() ? queries + values : 2 * static_cast<double>(m.kv_width());
  double whole = kOfDense * (4 * hidden + queries + keys + values);
  if (m.moe.enabled()) {
    const auto inner = static_cast<double>(m.moe.ffn_hidden_size);
    const double shared = m.moe.shared_ffn_hidden_size > 0 ? 1 : 0;
    whole += kOfExperts * (static_cast<double>(m.moe.topk) * (2 * static_cast<double>(m.expert_width()) + 3 * inner) +
                           shared * hidden + 3 * static_cast<double>(m.moe.shared_ffn_hidden_size));
  } else {
    whole += kOfDense * 3 * static_cast<double>(m.ffn_hidden_size);
  }
  return {whole, whole - 2 * values};
}

}  // namespace

std::string LayoutChoice::flags() const {
  std::string text = strprintf("--tp %d --pp %d", tp, pp);
  if (cp > 1) text += strprintf(" --cp %d", cp);
  if (ep > 1) text += strprintf(" --ep %d", ep);
  text += strprintf(" --zero-stage %d --mbs %ld", zero_stage, static_cast<long>(micro_batch));
  if (pp > 1) text += " --pipeline-schedule " + schedule;
  if (virtual_stages > 1) text += strprintf(" --vpp %d", virtual_stages);
  if (recompute != "none") text += " --recompute-granularity " + recompute;
  if (grad_sync == GradSync::kMicrobatch) text += " --grad-sync microbatch";
  return text;
}

void LayoutChoice::apply(TrainConfig& c) const {
  c.parallel.tp = tp;
  c.parallel.pp = pp;
  c.parallel.cp = cp;
  c.parallel.ep = ep;
  c.parallel.dp = 0;
  c.virtual_stages = virtual_stages;
  c.zero_stage = zero_stage;
  c.micro_batch_size = micro_batch;
  c.num_microbatches = 0;
  c.recompute_granularity = recompute;
  c.pipeline_schedule = schedule;
  c.grad_sync = grad_sync;
}

void settle_grad_sync(const TrainConfig& c, LayoutChoice& l) {
  const bool each = zero_stage_row(l.zero_stage).gradients && l.pp == 1 && c.accumulation == Accumulation::kSequential;
  l.grad_sync = each ? GradSync::kMicrobatch : GradSync::kStep;
}

RoughCost rough_cost(const TrainConfig& c, const HardwareProfile& profile, const LayoutChoice& l) {
  constexpr double kReached = 0.5, kLinks = 0.7;  // fraction reached of the peak and of the links
  const ModelConfig& m = c.model;
  const auto dp = static_cast<double>(data_ranks(c, l)), tp = static_cast<double>(l.tp), pp = static_cast<double>(l.pp);
  const auto tokens = static_cast<double>(c.global_batch_size * m.seq_length);
  const auto hidden = static_cast<double>(m.hidden_size), layers = static_cast<double>(m.num_layers);
  const double again = l.recompute == "full" ? 4.0 / 3 : l.recompute == "selective" ? 1.05 : 1.0;
  const double compute = m.training_flops_per_token(m.seq_length) * tokens * again / c.parallel.world /
                         (profile.peak_flops_16bit * kReached);
  const double microbatches = static_cast<double>(c.global_batch_size) / dp / static_cast<double>(l.micro_batch);
  const double bubble = (pp - 1) / (microbatches * l.virtual_stages * (l.schedule == "zb-h1" ? 3 : 1));
  const double own_tokens = tokens / dp / static_cast<double>(l.cp);
  const double intra = profile.intra_node.bandwidth_bytes_per_ns * 1e9 * kLinks;
  const double inter = profile.inter_node.bandwidth_bytes_per_ns * 1e9 * kLinks;
  const int node = c.gpus_per_node > 0 ? c.gpus_per_node : profile.gpus_per_node;
  const double of_tensor = 8 * own_tokens * hidden * 2 * (tp - 1) / tp * layers / pp / (l.tp > node ? inter : intra);
  const Weights weights = weights_of(m);
  const double dense = weights.dense / tp / pp, experts = weights.experts / l.ep / pp;  // parameters per rank
  const double of_data = dp > 1 ? (l.zero_stage == 3 ? 6 : 4) * (dense + experts) / inter * 0.3 : 0;
  const double of_experts = m.moe.enabled() && l.ep > 1
                                ? 4 * own_tokens / tp * static_cast<double>(m.moe.topk) * hidden * 2 * layers / pp /
                                      (l.ep * l.tp > node ? inter : intra)
                                : 0;
  const double expert_replicas = std::max(dp * l.cp * tp / l.ep, 1.0);
  const double states = dense * state_bytes(l.zero_stage, dp) + experts * state_bytes(l.zero_stage, expert_replicas);
  const KeptBytes kept = kept_bytes(m);
  // If weight gradients are computed later, what was recomputed is kept until then.
  const bool freed_at_once = l.recompute == "full" && l.schedule != "zb-h1";
  const double of_layer = freed_at_once ? 2 * hidden : l.recompute == "none" ? kept.whole : kept.without_attention;
  const double in_flight = std::min(microbatches, pp);
  const double own_micro_batch =
      // tokens per rank and microbatch
      static_cast<double>(l.micro_batch * m.seq_length) / static_cast<double>(l.cp) / tp;
  const double activations = own_micro_batch * (of_layer * layers / pp * in_flight + (freed_at_once ? kept.whole : 0));
  // Each microbatch reads the weights in F and B and adds to their gradients.
  const double of_weights = microbatches * 14 * (dense + experts) / profile.memory_bandwidth;
  return {(compute + of_tensor + of_experts + of_weights) * (1 + bubble) + of_data, states + activations};
}

void PinnedLayout::apply(LayoutChoice& l) const {
  if (tp) l.tp = *tp;
  if (pp) l.pp = *pp;
  if (cp) l.cp = *cp;
  if (ep) l.ep = *ep;
  if (zero_stage) l.zero_stage = *zero_stage;
  if (micro_batch) l.micro_batch = *micro_batch;
  if (recompute) l.recompute = *recompute;
  if (l.pp > 1 && virtual_stages) l.virtual_stages = *virtual_stages;
  if (l.pp > 1 && schedule) l.schedule = *schedule;
}

bool PinnedLayout::holds(const TrainConfig& c, const LayoutChoice& l) const {
  LayoutChoice as_pinned = l;
  apply(as_pinned);
  return as_pinned == l && (!dp || data_ranks(c, l) == *dp);
}

bool has_replicas(const TrainConfig& c, const LayoutChoice& l) {
  const int64_t dense = data_ranks(c, l) * l.cp;
  return dense > 1 || (c.model.moe.enabled() && dense * l.tp / l.ep > 1);
}

std::vector<LayoutChoice> layout_candidates(const TrainConfig& c, const HardwareProfile& profile,
                                            const PinnedLayout& pinned) {
  constexpr int kLongSequence = 16384;
  const int node = c.gpus_per_node > 0 ? c.gpus_per_node : profile.gpus_per_node;
  std::vector<LayoutChoice> all;
  const int64_t experts = c.model.moe.enabled() ? c.model.moe.num_experts : 1;
  const auto sizes = [](const std::optional<int>& size, int64_t number, int64_t most) {
    return size ? std::vector<int>{*size} : divisors(number, most);
  };
  for (const int tp : sizes(pinned.tp, c.parallel.world, std::min(node, 64)))
    for (const int pp : sizes(pinned.pp, c.parallel.world, c.model.num_layers))
      for (const int cp : sizes(pinned.cp, c.parallel.world, c.model.seq_length >= kLongSequence ? 64 : 1))
        for (const int ep : sizes(pinned.ep, experts, c.parallel.world)) {
          LayoutChoice one{.tp = tp, .pp = pp, .cp = cp, .ep = ep};
          if (!has_replicas(c, one)) one.zero_stage = 0;
          pinned.apply(one);
          settle_grad_sync(c, one);
          if (divides(c, one) && pinned.holds(c, one)) all.push_back(one);
        }
  return all;
}

std::vector<LayoutChoice> neighbours(const TrainConfig& c, const LayoutChoice& from) {
  std::vector<LayoutChoice> all;
  const auto add = [&](auto change) {
    LayoutChoice one = from;
    change(one);
    settle_grad_sync(c, one);
    if (one != from && one.micro_batch > 0 && divides(c, one)) all.push_back(one);
  };
  add([](LayoutChoice& l) { l.micro_batch *= 2; });
  add([](LayoutChoice& l) { l.micro_batch /= 2; });
  for (const char* kept : {"none", "selective", "full"}) add([&](LayoutChoice& l) { l.recompute = kept; });
  if (has_replicas(c, from))
    for (const int stage : {0, 1, 2, 3}) add([&](LayoutChoice& l) { l.zero_stage = stage; });
  if (from.pp == 1) return all;
  add([](LayoutChoice& l) { l.schedule = "1f1b", l.virtual_stages = 1; });
  add([](LayoutChoice& l) { l.schedule = "zb-h1", l.virtual_stages = 1; });
  for (const int stages : {2, 4})
    add([&](LayoutChoice& l) { l.schedule = "interleaved-1f1b", l.virtual_stages = stages; });
  return all;
}

}  // namespace ranklab
