#include "core/parallel/context/context_attention.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <utility>

#include "core/base/injected_bug.h"
#include "core/comm/purpose.h"
#include "core/nn/attention/attention_sinks.h"
#include "core/nn/attention/block_attention.h"
#include "core/nn/attention/softmax_merge.h"
#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/parallel/context/attention_trace.h"
#include "core/parallel/context/position_order.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/sim/recompute_scope.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

constexpr int kKeyValueLane = 1, kGradLane = 2;

// A message in flight to the next rank, and the one coming from the previous rank.
class Hop {
 public:
  Hop(const ContextParallel& cp, const at::Tensor& flat, int lane, Purpose purpose) : flat_(flat) {
    const PurposeScope scope(purpose);
    const int n = cp.size(), rank = cp.rank();
    coming_ = cp.comm->recv_async(at::empty_like(flat), (rank + n - 1) % n, {0, lane});
    going_ = cp.comm->send_async(flat, (rank + 1) % n, {0, lane});
  }
  at::Tensor wait() {
    going_->wait();
    return coming_->wait();
  }

 private:
  at::Tensor flat_;  // kept until it is sent
  WorkPtr going_, coming_;
};

// What attention needs besides tensors.
struct Attended : torch::CustomClassHolder {
  Attended(ContextRule its_rule, ContextParallel its_cp, KeyMaker its_maker)
      : rule(std::move(its_rule)), cp(std::move(its_cp)), maker(std::move(its_maker)) {}
  ContextRule rule;
  ContextParallel cp;
  KeyMaker maker;
};

// This rank's queries, and the keys and values that it has.
struct OwnPart {
  at::Tensor q;
  KeyValue keys;

  int64_t positions() const { return q.size(2); }
};

// Keys and values at positions `runs`, or the tensors from which they are computed.
struct KeyPart {
  std::vector<PositionRun> runs;
  KeyValue heads;
  int of_rank = 0;
};

// All keys and values: as one part in the order of positions, or as one part per rank.
std::vector<KeyPart> gathered(const OwnPart& in, const Attended& how) {
  const ContextParallel& cp = how.cp;
  const KeyValue& own = in.keys;
  if (!cp.active()) return {{cp.part(in.positions(), 0), own}};
  const PurposeScope scope(Purpose::kKeyValue);
  const at::Tensor all = cp.comm->all_gather(own.packed().unsqueeze(0));
  const NoCostScope views;  // a kernel reads them where they are
  const int n = cp.size();
  std::vector<KeyPart> by_rank;
  for (int rank = 0; rank < n; ++rank)
    by_rank.push_back({cp.part(in.positions(), rank), KeyValue::unpacked(all.select(0, rank), own), rank});
  const auto parts = gathered_keys(in.positions() * n, n, cp.split.balance);
  if (parts.size() > 1 || how.maker.makes()) return by_rank;
  const auto ordered = [&](at::Tensor KeyValue::*which) {
    std::vector<at::Tensor> of_ranks;
    for (const KeyPart& part : by_rank) of_ranks.push_back((part.heads.*which).permute({2, 0, 1, 3}));
    return in_position_order(at::cat(of_ranks), n, cp.split.balance).permute({1, 2, 0, 3});
  };
  return {{parts.front(), {ordered(&KeyValue::k), ordered(&KeyValue::v)}}};
}

// The gradients of the parts from gathered(), summed over ranks, for this rank's positions.
KeyValue scattered(const std::vector<KeyPart>& parts, const OwnPart& in, const ContextParallel& cp) {
  if (!cp.active()) return parts.front().heads;
  const int n = cp.size();
  std::vector<at::Tensor> of_rank;
  {
    const NoCostScope views;
    if (parts.size() > 1) {
      for (const KeyPart& part : parts) of_rank.push_back(part.heads.packed());
    } else {
      const auto by_rank = [&](const at::Tensor& x) {
        return rank_after_rank(x.permute({2, 0, 1, 3}).contiguous(), n, cp.split.balance).chunk(n);
      };
      const auto k = by_rank(parts[0].heads.k), v = by_rank(parts[0].heads.v);
      for (size_t rank = 0; rank < k.size(); ++rank)
        of_rank.push_back(KeyValue{k[rank].permute({1, 2, 0, 3}), v[rank].permute({1, 2, 0, 3})}.packed());
    }
  }
  const PurposeScope scope(Purpose::kKeyValueGrad);
  return KeyValue::unpacked(cp.comm->reduce_scatter(at::stack(of_rank)).select(0, 0), in.keys);
}

// Sequences [first, first + count) of a microbatch.
struct Rows {
  int64_t first = 0, count = 0;

  at::Tensor of(const at::Tensor& x) const { return count == x.size(0) ? x : x.narrow(0, first, count); }
  SoftmaxHeads of(const SoftmaxHeads& x) const { return {of(x.q), of(x.k), of(x.v)}; }
};

// Whether all sequences of a microbatch have the same blocks.
bool are_alike(const ContextRule& rule) { return rule.documents == nullptr || rule.documents->size() == 1; }

// Calls `attend_block(rows, block)` for all blocks of queries and keys; sequences with several documents have their own
// blocks.
template <typename AttendBlock>
void for_each_block(int64_t sequences, const std::vector<PositionRun>& queries, const std::vector<PositionRun>& keys,
                    const ContextRule& rule, const AttendBlock& attend_block) {
  const at::AutoDispatchBelowADInplaceOrView unfollowed;  // inside a custom function nothing records
  if (are_alike(rule)) {
    const std::vector<int64_t> starts = rule.documents == nullptr ? std::vector<int64_t>{} : rule.documents->front();
    for (const AttentionBlock& block : attention_blocks(queries, keys, rule.scores.window, starts))
      attend_block(Rows{0, sequences}, block);
    return;
  }
  for (int64_t i = 0; i < sequences; ++i) {
    const std::vector<int64_t>& documents = rule.documents->at(static_cast<size_t>(i));
    for (const AttentionBlock& block : attention_blocks(queries, keys, rule.scores.window, documents))
      attend_block(Rows{i, 1}, block);
  }
}

// The number of a microbatch's sequences that have blocks of their own.
int64_t own_sequences(const at::Tensor& q, const ContextRule& rule) { return are_alike(rule) ? 1 : q.size(0); }

// The masks that multiply the probabilities of a block; undefined: no dropout.
class DropMasks {
 public:
  DropMasks(const ContextRule& rule, const at::Tensor& q, const std::vector<PositionRun>& queries,
            const std::vector<PositionRun>& keys)
      : dropout_(rule.dropout.get()), q_(q) {
    if (dropout_ != nullptr) queries_ = positions_of(queries), keys_ = positions_of(keys);
  }
  at::Tensor of(const Rows& rows, const AttentionBlock& b) const {
    if (dropout_ == nullptr) return {};
    const at::Tensor like = at::empty({0}, q_.options().requires_grad(false).dtype(kernel_wide_type(q_)));
    return dropout_->mask(rows.first, rows.count, q_.size(1), part(queries_, b.query, b.queries),
                          part(keys_, b.key, b.keys), like);
  }

 private:
  static std::vector<int64_t> part(const std::vector<int64_t>& positions, int64_t begin, int64_t count) {
    return {positions.begin() + begin, positions.begin() + begin + count};
  }
  const ScoreDropout* dropout_;
  const at::Tensor& q_;
  std::vector<int64_t> queries_, keys_;
};

void attend(SoftmaxMerge& merge, const at::Tensor& q, const std::vector<PositionRun>& queries, const KeyPart& keys,
            const ContextRule& rule, const ContextParallel& cp) {
  const SoftmaxHeads in{q, keys.heads.k, keys.heads.v};
  AttentionSpan span(cp, queries, keys.runs, AttentionPass::kForward, own_sequences(q, rule));
  const DropMasks masks(rule, q, queries, keys.runs);
  for_each_block(q.size(0), queries, keys.runs, rule, [&](const Rows& rows, const AttentionBlock& block) {
    const at::Tensor kept = masks.of(rows, block);
    merge.of_sequences(rows.first, rows.count)
        .add(block, block_attention(rows.of(in), block, rule.scores, kept), charged_type(q, rule.scores, kept));
    span.add(block);
  });
  span.end();
}

// Adds to `d`: dq for all queries, and dk and dv for these keys.
void attend_grad(const SoftmaxHeads& d, const SoftmaxHeads& in, const SoftmaxedHeads& forward,
                 const at::Tensor& grad_out, const std::vector<PositionRun>& queries,
                 const std::vector<PositionRun>& keys, const ContextRule& rule, const ContextParallel& cp) {
  AttentionSpan span(cp, queries, keys, AttentionPass::kBackward, own_sequences(in.q, rule));
  const DropMasks masks(rule, in.q, queries, keys);
  for_each_block(in.q.size(0), queries, keys, rule, [&](const Rows& rows, const AttentionBlock& b) {
    const at::Tensor kept = masks.of(rows, b);
    const SoftmaxHeads block = block_attention_grad(rows.of(in), {rows.of(forward.out), rows.of(forward.log_sum_exp)},
                                                    rows.of(grad_out), b, rule.scores, kept);
    const SoftmaxHeads sums = rows_of_block(rows.of(d), b);
    const at::ScalarType charged = charged_type(in.q, rule.scores, kept);
    add_part(sums.q, block.q, charged);
    add_part(sums.k, block.k, charged);
    add_part(sums.v, block.v, charged);
    span.add(b);
  });
  span.end();
}

// What backward computes: the gradients of this rank's queries, of the keys and values that it has, and of the weights
// from which these are computed.
struct OwnGrads {
  at::Tensor q;
  KeyValue keys;
  std::vector<at::Tensor> weights = {};
};

// The inputs of backward.
struct Incoming {
  const SoftmaxedHeads& forward;
  const at::Tensor& grad_out;
};

void attend_to(SoftmaxMerge& merge, const OwnPart& in, const KeyPart& part, const Attended& how) {
  const ArrivedKeys keys(how.maker, part.heads, part.of_rank, ArrivedKeys::For::kForward);
  attend(merge, in.q, how.cp.part(in.positions(), how.cp.rank()), {part.runs, keys.heads()}, how.rule, how.cp);
}

// Adds to d.q and d.weights. RETURNS: the gradients of the tensors that came from the part's rank.
KeyValue grads_of(const KeyPart& part, const OwnPart& in, const Incoming& given, const Attended& how, OwnGrads& d) {
  const ArrivedKeys keys(how.maker, part.heads, part.of_rank, ArrivedKeys::For::kBackward);
  const KeyValue sums = keys.heads().wide_zeros();
  if (TypeWatch* watch = type_watch_of_thread) {
    watch->is_made_of(sums.k, given.grad_out);
    watch->is_made_of(sums.v, given.grad_out);
  }
  attend_grad({d.q, sums.k, sums.v}, {in.q, keys.heads().k, keys.heads().v}, given.forward, given.grad_out,
              how.cp.part(in.positions(), how.cp.rank()), part.runs, how.rule, how.cp);
  return keys.grads(sums, d.weights);
}

// Keys and values are sent in one message, and so are their gradients.
void type_sums(const OwnGrads& d, const KeyValue& summand, const ContextParallel& cp) {
  TypeWatch* watch = type_watch_of_thread;
  if (watch == nullptr || !cp.active()) return;
  watch->is_scattered_sum_of(d.keys.k, summand.k, cp.comm->group().axis);
  watch->is_scattered_sum_of(d.keys.v, summand.v, cp.comm->group().axis);
}

// Call when every query has attended to all of its keys.
SoftmaxedHeads finished(SoftmaxMerge& merge, const Attended& how) {
  if (how.rule.scores.sinks.defined()) merge.add_sinks(how.rule.scores.sinks);
  return merge.result();
}

SoftmaxedHeads ring_forward(const OwnPart& in, const Attended& how) {
  const ContextParallel& cp = how.cp;
  const int n = cp.size(), rank = cp.rank();
  SoftmaxMerge merge(in.q, in.q.size(3));
  at::Tensor flat = in.keys.packed();
  for (int hop = 0; hop < n; ++hop) {
    std::unique_ptr<Hop> next;
    if (hop + 1 < n) next = std::make_unique<Hop>(cp, flat, kKeyValueLane, Purpose::kKeyValue);
    const int from = (rank + n - hop) % n;
    attend_to(merge, in, {cp.part(in.positions(), from), KeyValue::unpacked(flat, in.keys), from}, how);
    if (next) flat = next->wait();
  }
  return finished(merge, how);
}

// Keys and values go round as in forward. The sums of their gradients follow one hop behind; each rank adds its own
// contribution, and the n-th hop returns them to their rank.
OwnGrads ring_backward(const OwnPart& in, const Incoming& given, const Attended& how) {
  const ContextParallel& cp = how.cp;
  const int n = cp.size(), rank = cp.rank();
  OwnGrads d{wide_zeros(in.q), {}};
  at::Tensor flat = in.keys.packed();
  std::unique_ptr<Hop> sums;
  KeyValue summand;
  for (int hop = 0; hop < n; ++hop) {
    std::unique_ptr<Hop> next;
    if (hop + 1 < n) next = std::make_unique<Hop>(cp, flat, kKeyValueLane, Purpose::kKeyValue);
    const int from = (rank + n - hop) % n;
    const KeyPart part{cp.part(in.positions(), from), KeyValue::unpacked(flat, in.keys), from};
    const bool lost = injected(InjectedBug::kCpAttentionGradient) && hop > 0 && hop + 1 == n;
    KeyValue own = lost ? part.heads.wide_zeros() : grads_of(part, in, given, how, d);
    if (hop == 0 && type_watch_of_thread != nullptr) summand = own;
    // makes a copy, so the parts are not held while messages are in flight
    at::Tensor sum = std::exchange(own, {}).packed();
    if (sums) sum = sums->wait().add_(sum);
    sums = std::make_unique<Hop>(cp, sum, kGradLane, Purpose::kKeyValueGrad);
    if (next) flat = next->wait();
  }
  d.keys = KeyValue::unpacked(sums->wait(), in.keys);
  type_sums(d, summand, cp);
  return d;
}

SoftmaxedHeads gather_forward(const OwnPart& in, const Attended& how) {
  SoftmaxMerge merge(in.q, in.q.size(3));
  for (const KeyPart& part : gathered(in, how)) attend_to(merge, in, part, how);
  return finished(merge, how);
}

OwnGrads gather_backward(const OwnPart& in, const Incoming& given, const Attended& how) {
  OwnGrads d{wide_zeros(in.q), {}};
  std::vector<KeyPart> grads;
  for (const KeyPart& part : gathered(in, how))
    grads.push_back({part.runs, grads_of(part, in, given, how, d), part.of_rank});
  d.keys = scattered(grads, in, how.cp);
  type_sums(d, grads.front().heads, how.cp);
  return d;
}

bool is_ring(const ContextParallel& cp) { return cp.active() && cp.split.exchange == ContextExchange::kP2p; }

SoftmaxedHeads attention_forward(const OwnPart& in, const Attended& how) {
  return is_ring(how.cp) ? ring_forward(in, how) : gather_forward(in, how);
}

// Saving a view would keep everything that it is a view of; for values, the whole projection.
at::Tensor without_more(const at::Tensor& x) { return x.storage().nbytes() > x.nbytes() ? x.contiguous() : x; }

using AttendedPtr = c10::intrusive_ptr<Attended>;

struct ContextAttention : CustomFunction<ContextAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& /*sinks*/, at::TensorList /*weights*/, const AttendedPtr& how,
                            bool recompute) {
    const SoftmaxedHeads f = attention_forward({q, {k, v}}, *how);
    const at::Tensor out_SBH = by_position(f.out);
    variable_list kept = {without_more(q), without_more(k), without_more(v)};
    if (!recompute) kept.insert(kept.end(), {out_SBH, f.log_sum_exp});
    ctx->save_for_backward(std::move(kept));
    ctx->saved_data["attended"] = c10::IValue::make_capsule(how);
    return out_SBH;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const OwnPart in{saved[0], {saved[1], saved[2]}};
    const auto how = c10::static_intrusive_pointer_cast<Attended>(ctx->saved_data["attended"].toCapsule());
    const auto by_head = [&](const at::Tensor& x_SBH) {
      return x_SBH.reshape({x_SBH.size(0), x_SBH.size(1), in.q.size(1), -1}).permute({1, 2, 0, 3});
    };
    SoftmaxedHeads f;
    if (saved.size() == 3) {
      const RecomputeScope uncounted;
      f = attention_forward(in, *how);
    } else {
      f = {by_head(saved[3]), saved[4]};
    }
    const at::Tensor grad_out = by_head(grads[0]);
    const Incoming given{f, grad_out};
    OwnGrads d = is_ring(how->cp) ? ring_backward(in, given, *how) : gather_backward(in, given, *how);
    const NoCostScope within_the_kernel;
    variable_list result = {d.q.to(in.q.scalar_type()), d.keys.k.to(in.keys.k.scalar_type()),
                            d.keys.v.to(in.keys.v.scalar_type()), sinks_grad(given, how->rule.scores.sinks)};
    d.weights.resize(how->maker.weights.size());  // none: they are deferred, or no rank has keys
    for (size_t i = 0; i < d.weights.size(); ++i)
      result.push_back(d.weights[i].defined() ? d.weights[i].to(how->maker.weights[i].scalar_type()) : at::Tensor());
    result.resize(result.size() + 2);
    return result;
  }

  static at::Tensor sinks_grad(const Incoming& given, const at::Tensor& sinks) {
    return sinks.defined() && sinks.requires_grad() ? sink_grad(given.forward, given.grad_out, sinks) : at::Tensor();
  }
};

}  // namespace

void open_ring(const ContextParallel& cp) {
  Communicator* ring = cp.split.uses(ContextExchange::kP2p) ? cp.comm : nullptr;
  for (Communicator* comm : {ring, cp.ring}) {
    if (comm == nullptr || comm->size() == 1) continue;
    std::vector<MessageLane> lanes;
    for (const int lane : {kKeyValueLane, kGradLane}) {
      for (int rank = 0; rank < comm->size(); ++rank) lanes.push_back({rank, (rank + 1) % comm->size(), lane});
    }
    comm->open_lanes(lanes);
  }
}

at::Tensor context_attention(const SoftmaxHeads& in, const ContextRule& rule, const ContextParallel& cp, bool recompute,
                             KeyMaker maker) {
  const std::vector<at::Tensor> weights = maker.weights;
  return ContextAttention::apply(in.q, in.k, in.v, rule.scores.sinks, at::TensorList(weights),
                                 c10::make_intrusive<Attended>(rule, cp, std::move(maker)), recompute);
}

}  // namespace ranklab
