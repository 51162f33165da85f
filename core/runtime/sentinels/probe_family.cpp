// Follows the model's prediction for one fixed sequence: the first of the validation data, or tokens drawn from the
// seed.
#include <span>

#include "core/base/checksum.h"
#include "core/base/numbers/philox.h"
#include "core/runtime/sentinels/attention_probe.h"
#include "core/runtime/sentinels/families.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr int64_t kTopTokens = 10;

class ProbeFamily final : public SentinelFamily {
 public:
  ProbeFamily(SentinelContext& context, RankTable& table) : context_(context), first_slot_(table.reserve(kSlots)) {
    for (const int64_t layer : context.sentinel_layers) attention_slots_[layer] = table.reserve(kAttentionSlots);
  }

  bool reads_parameters() const override { return true; }
  void fill(const SentinelStep&, RankTable& table) override {
    if (!tokens_BS_.defined()) take_probe();
    ModuleHooks& hooks = context_.model.registry().hooks();
    attention_.clear();
    hooks.set(attention_, true);
    const at::Tensor logits = context_.logits({.tokens_BS = tokens_BS_.to(context_.ctx.device()), .targets_BS = {}});
    hooks.set(attention_, false);
    measure(logits, table);
    for (const auto& [layer, seen] : attention_.seen()) {
      const auto it = attention_slots_.find(layer);
      if (it == attention_slots_.end()) continue;
      table.mine(it->second + kLogit) = seen.largest;
      table.mine(it->second + kEntropySum) = seen.entropy;
      table.mine(it->second + kShareSum) = seen.share;
      table.mine(it->second + kQueries) = seen.queries;
      table.mine(it->second + kSinkSum) = seen.sink;
    }
  }

  // All ranks have the same logits, so only rank 0's values are reported.
  void report(const SentinelStep&, const RankTable& table, SentinelReport& out) override {
    out.add("probe_hash", table.of(0, first_slot_ + kHash));
    out.add("probe_loss", table.of(0, first_slot_ + kLoss));
    out.add("probe_entropy", table.of(0, first_slot_ + kEntropy));
    out.add("probe_topk", table.of(0, first_slot_ + kTopMass));
    out.add("probe_kl", table.of(0, first_slot_ + kDivergence));
    for (const auto& [layer, slots] : attention_slots_) {
      const std::string place = "block_" + std::to_string(layer);
      const double queries = table.sum(slots + kQueries);
      out.add("attention_logit", table.most(slots + kLogit), place);
      out.add("attention_entropy", table.sum(slots + kEntropySum) / queries, place);
      out.add("attention_collapse", table.sum(slots + kShareSum) / queries, place);
      if (context_.plan.config.model.softmax != SoftmaxKind::kVanilla)
        out.add("attention_sink", table.sum(slots + kSinkSum) / queries, place);
    }
  }

 private:
  enum Slot { kHash, kLoss, kEntropy, kTopMass, kDivergence, kSlots };
  enum AttentionSlot { kLogit, kEntropySum, kShareSum, kQueries, kSinkSum, kAttentionSlots };

  // Rank 0 holds a first stage, which loads data.
  void take_probe() {
    const NoCostScope free;
    const int64_t length = context_.plan.config.model.seq_length;
    at::Tensor both = at::empty({2, length}, at::kLong);
    if (context_.ctx.global_rank() == 0) {
      if (context_.data.has_validation()) {
        const Batch batch = context_.data.validation_batch(0, 0);
        both[0].copy_(batch.tokens_BS[0].to(at::kCPU));
        both[1].copy_(batch.targets_BS[0].to(at::kCPU));
      } else {
        draw(both, length);
      }
    }
    both = context_.world.broadcast(both.to(context_.ctx.control_device()), 0).to(at::kCPU);
    tokens_BS_ = both[0].unsqueeze(0).contiguous();
    targets_S_ = both[1].contiguous();
  }
  void draw(const at::Tensor& both, int64_t length) const {
    const TrainConfig& c = context_.plan.config;
    const RandomStream stream(c.seed, RandomPurpose::kSample, "sentinel probe");
    const auto token = [&](int64_t i) {
      return static_cast<int64_t>(stream.below(static_cast<uint64_t>(i), static_cast<uint64_t>(c.model.vocab_size)));
    };
    int64_t* out = both.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < length; ++i) {
      out[i] = token(i);
      out[length + i] = token(i + 1);
    }
  }
  uint64_t hash() const {
    return xxh3(std::span(static_cast<const std::byte*>(tokens_BS_.const_data_ptr()), tokens_BS_.nbytes()));
  }

  void measure(const at::Tensor& logits_BSV, RankTable& table) {
    const NoCostScope free;
    const at::NoGradGuard no_grad;
    const at::Tensor logits_SV =
        logits_BSV[0].narrow(0, 0, targets_S_.size(0)).to(at::kCPU).to(at::kDouble).contiguous();
    const at::Tensor log_p_SV = logits_SV - logits_SV.logsumexp(-1, true);
    const at::Tensor counts_S = targets_S_.ge(0);
    const at::Tensor picked_S = log_p_SV.gather(1, targets_S_.clamp_min(0).unsqueeze(1)).squeeze(1);
    const double counted = counts_S.sum().item<double>();
    const at::Tensor last_V = log_p_SV[-1].clone(), p_V = last_V.exp();
    table.mine(first_slot_ + kHash) = static_cast<double>(hash() >> 12);
    if (counted > 0) table.mine(first_slot_ + kLoss) = -(picked_S * counts_S).sum().item<double>() / counted;
    table.mine(first_slot_ + kEntropy) = -(p_V * last_V).sum().item<double>();
    table.mine(first_slot_ + kTopMass) = std::get<0>(p_V.topk(std::min(kTopTokens, p_V.size(0)))).sum().item<double>();
    // KL(now | before): the information that the previous prediction lacks.
    if (before_V_.defined()) table.mine(first_slot_ + kDivergence) = (p_V * (last_V - before_V_)).sum().item<double>();
    before_V_ = last_V;
  }

  SentinelContext& context_;
  size_t first_slot_;
  std::map<int64_t, size_t> attention_slots_;  // by layer
  AttentionProbe attention_;
  at::Tensor tokens_BS_, targets_S_, before_V_;
};

}  // namespace

std::unique_ptr<SentinelFamily> make_probe_family(SentinelContext& context, RankTable& table) {
  return std::make_unique<ProbeFamily>(context, table);
}

}  // namespace ranklab
