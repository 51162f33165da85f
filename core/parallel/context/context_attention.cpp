#include "core/parallel/context/context_attention.h"

#include <memory>
#include <utility>

#include "core/comm/purpose.h"
#include "core/nn/block_attention.h"
#include "core/nn/custom_function.h"
#include "core/nn/kernel_path.h"
#include "core/parallel/context/attention_trace.h"
#include "core/parallel/context/position_order.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {
namespace {

using torch::autograd::variable_list;

constexpr int kKeyValueLane = 1, kGradLane = 2;

// Keys and values, or their gradients; they travel in one flat message.
struct KeyValue {
  at::Tensor k, v;

  at::Tensor packed() const { return at::cat({k.reshape({-1}), v.reshape({-1})}); }
  // As `like` is shaped.
  static KeyValue unpacked(const at::Tensor& flat, const KeyValue& like) {
    return {flat.narrow(0, 0, like.k.numel()).view(like.k.sizes()),
            flat.narrow(0, like.k.numel(), like.v.numel()).view(like.v.sizes())};
  }
};

// A message on its way to the next rank, and the one that comes from the previous.
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
  at::Tensor flat_;  // until it is sent
  WorkPtr going_, coming_;
};

// Keys and values at positions `runs`.
struct KeyPart {
  std::vector<PositionRun> runs;
  KeyValue heads;
};

// All keys and values: one part in the order of positions, or one for each rank's stripe.
std::vector<KeyPart> gathered(const KeyValue& own, const ContextParallel& cp) {
  if (!cp.active()) return {{cp.part(own.k.size(2), 0), own}};
  const PurposeScope scope(Purpose::kKeyValue);
  const at::Tensor all = cp.comm->all_gather(own.packed().unsqueeze(0));
  const NoCostScope views;  // a kernel reads them where they are
  const int n = cp.size();
  std::vector<KeyValue> of_rank;
  for (int rank = 0; rank < n; ++rank) of_rank.push_back(KeyValue::unpacked(all.select(0, rank), own));
  const int64_t positions = own.k.size(2);
  const auto parts = gathered_keys(positions * n, n, cp.split.balance);
  if (parts.size() > 1) {
    std::vector<KeyPart> by_rank;
    for (size_t rank = 0; rank < parts.size(); ++rank) by_rank.push_back({parts[rank], of_rank[rank]});
    return by_rank;
  }
  const auto ordered = [&](at::Tensor KeyValue::*which) {
    std::vector<at::Tensor> by_rank;
    for (const KeyValue& kv : of_rank) by_rank.push_back((kv.*which).permute({2, 0, 1, 3}));
    return in_position_order(at::cat(by_rank), n, cp.split.balance).permute({1, 2, 0, 3});
  };
  return {{parts.front(), {ordered(&KeyValue::k), ordered(&KeyValue::v)}}};
}

// Keys and values that the caller has gathered, rank after rank.
std::vector<KeyPart> parts_of_all(const KeyValue& all, const ContextParallel& cp) {
  const int64_t own = all.k.size(2) / cp.size();
  std::vector<KeyPart> parts;
  for (int rank = 0; rank < cp.size(); ++rank)
    parts.push_back({cp.part(own, rank), {all.k.narrow(2, rank * own, own), all.v.narrow(2, rank * own, own)}});
  return parts;
}
bool has_all_keys(const SoftmaxHeads& in) { return in.k.size(2) > in.q.size(2); }

std::vector<KeyPart> all_keys(const SoftmaxHeads& in, const ContextParallel& cp) {
  return has_all_keys(in) ? parts_of_all({in.k, in.v}, cp) : gathered({in.k, in.v}, cp);
}

// Gradients of the parts of gathered(), summed over ranks: those of this rank's positions.
KeyValue scattered(const std::vector<KeyPart>& parts, const KeyValue& own, const ContextParallel& cp) {
  if (!cp.active()) return parts.front().heads;
  const int n = cp.size();
  std::vector<at::Tensor> of_rank;
  {
    const NoCostScope views;
    if (cp.split.balance == SequenceBalance::kStripe) {
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
  return KeyValue::unpacked(cp.comm->reduce_scatter(at::stack(of_rank)).select(0, 0), own);
}

// Sequences [first, first + count) of a microbatch.
struct Rows {
  int64_t first = 0, count = 0;

  at::Tensor of(const at::Tensor& x) const { return x.narrow(0, first, count); }
  SoftmaxHeads of(const SoftmaxHeads& x) const { return {of(x.q), of(x.k), of(x.v)}; }
};

// Calls `attend_block(rows, block)` for all blocks of queries and keys; sequences of several documents have their own.
template <typename AttendBlock>
void for_each_block(int64_t sequences, const std::vector<PositionRun>& queries, const std::vector<PositionRun>& keys,
                    const ContextRule& rule, const AttendBlock& attend_block) {
  if (rule.documents == nullptr) {
    for (const AttentionBlock& block : attention_blocks(queries, keys, rule.scores.window))
      attend_block(Rows{0, sequences}, block);
    return;
  }
  for (int64_t i = 0; i < sequences; ++i) {
    const std::vector<int64_t>& documents = rule.documents->at(static_cast<size_t>(i));
    for (const AttentionBlock& block : attention_blocks(queries, keys, rule.scores.window, documents))
      attend_block(Rows{i, 1}, block);
  }
}

// How many of a microbatch's sequences have blocks of their own.
int64_t own_sequences(const at::Tensor& q, const ContextRule& rule) {
  return rule.documents == nullptr ? 1 : q.size(0);
}

void attend(SoftmaxMerge& merge, const at::Tensor& q, const std::vector<PositionRun>& queries, const KeyPart& keys,
            const ContextRule& rule, const ContextParallel& cp) {
  const SoftmaxHeads in{q, keys.heads.k, keys.heads.v};
  AttentionSpan span(cp, queries, keys.runs, AttentionPass::kForward, own_sequences(q, rule));
  for_each_block(q.size(0), queries, keys.runs, rule, [&](const Rows& rows, const AttentionBlock& block) {
    merge.of_sequences(rows.first, rows.count).add(block, block_attention(rows.of(in), block, rule.scores));
    span.add(block);
  });
  span.end();
}

// Adds to `d`: dq of all queries, and dk and dv of these keys.
void attend_grad(const SoftmaxHeads& d, const SoftmaxHeads& in, const SoftmaxedHeads& forward,
                 const at::Tensor& grad_out, const std::vector<PositionRun>& queries,
                 const std::vector<PositionRun>& keys, const ContextRule& rule, const ContextParallel& cp) {
  AttentionSpan span(cp, queries, keys, AttentionPass::kBackward, own_sequences(in.q, rule));
  for_each_block(in.q.size(0), queries, keys, rule, [&](const Rows& rows, const AttentionBlock& b) {
    const SoftmaxHeads block = block_attention_grad(rows.of(in), {rows.of(forward.out), rows.of(forward.log_sum_exp)},
                                                    rows.of(grad_out), b, rule.scores);
    const SoftmaxHeads sums = rows.of(d);
    sums.q.narrow(2, b.query, b.queries).add_(block.q);
    sums.k.narrow(2, b.key, b.keys).add_(block.k);
    sums.v.narrow(2, b.key, b.keys).add_(block.v);
    span.add(b);
  });
  span.end();
}

at::Tensor wide_zeros(const at::Tensor& like) {
  return at::zeros(like.sizes(), like.options().dtype(kernel_wide_type(like)));
}
KeyValue wide_zeros(const KeyValue& like) { return {wide_zeros(like.k), wide_zeros(like.v)}; }

SoftmaxedHeads ring_forward(const SoftmaxHeads& in, const ContextRule& rule, const ContextParallel& cp) {
  const int n = cp.size(), rank = cp.rank();
  const int64_t positions = in.q.size(2);
  const KeyValue own{in.k, in.v};
  SoftmaxMerge merge(in.q, in.v.size(3));
  at::Tensor flat = own.packed();
  for (int hop = 0; hop < n; ++hop) {
    std::unique_ptr<Hop> next;
    if (hop + 1 < n) next = std::make_unique<Hop>(cp, flat, kKeyValueLane, Purpose::kKeyValue);
    const KeyPart keys{cp.part(positions, (rank + n - hop) % n), KeyValue::unpacked(flat, own)};
    attend(merge, in.q, cp.part(positions, rank), keys, rule, cp);
    if (next) flat = next->wait();
  }
  return merge.result();
}

// Keys and values go round as in forward; the sums of their gradients follow one hop behind, to which each rank adds
// its own, and the n-th hop brings them home.
SoftmaxHeads ring_backward(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                           const ContextRule& rule, const ContextParallel& cp) {
  const int n = cp.size(), rank = cp.rank();
  const int64_t positions = in.q.size(2);
  const KeyValue own{in.k, in.v};
  const at::Tensor dq = wide_zeros(in.q);
  at::Tensor flat = own.packed();
  std::unique_ptr<Hop> sums;
  for (int hop = 0; hop < n; ++hop) {
    std::unique_ptr<Hop> next;
    if (hop + 1 < n) next = std::make_unique<Hop>(cp, flat, kKeyValueLane, Purpose::kKeyValue);
    const KeyValue keys = KeyValue::unpacked(flat, own), d = wide_zeros(own);
    attend_grad({dq, d.k, d.v}, {in.q, keys.k, keys.v}, forward, grad_out, cp.part(positions, rank),
                cp.part(positions, (rank + n - hop) % n), rule, cp);
    at::Tensor sum = d.packed();
    if (sums) sum = sums->wait().add_(sum);
    sums = std::make_unique<Hop>(cp, sum, kGradLane, Purpose::kKeyValueGrad);
    if (next) flat = next->wait();
  }
  const KeyValue home = KeyValue::unpacked(sums->wait(), own);
  return {dq, home.k, home.v};
}

SoftmaxedHeads gather_forward(const SoftmaxHeads& in, const ContextRule& rule, const ContextParallel& cp) {
  SoftmaxMerge merge(in.q, in.v.size(3));
  for (const KeyPart& keys : all_keys(in, cp)) attend(merge, in.q, cp.part(in.q.size(2), cp.rank()), keys, rule, cp);
  return merge.result();
}

SoftmaxHeads gather_backward(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                             const ContextRule& rule, const ContextParallel& cp) {
  const at::Tensor dq = wide_zeros(in.q);
  std::vector<KeyPart> grads;
  for (const KeyPart& keys : all_keys(in, cp)) {
    const KeyValue d = wide_zeros(keys.heads);
    attend_grad({dq, d.k, d.v}, {in.q, keys.heads.k, keys.heads.v}, forward, grad_out, cp.part(in.q.size(2), cp.rank()),
                keys.runs, rule, cp);
    grads.push_back({keys.runs, d});
  }
  if (has_all_keys(in)) {  // the caller scatters them
    const NoCostScope views;
    std::vector<at::Tensor> k, v;
    for (const KeyPart& part : grads) {
      k.push_back(part.heads.k);
      v.push_back(part.heads.v);
    }
    return {dq, at::cat(k, 2), at::cat(v, 2)};
  }
  const KeyValue home = scattered(grads, {in.k, in.v}, cp);
  return {dq, home.k, home.v};
}

bool is_ring(const ContextParallel& cp) { return cp.active() && cp.split.exchange == ContextExchange::kP2p; }

SoftmaxedHeads attention_forward(const SoftmaxHeads& in, const ContextRule& rule, const ContextParallel& cp) {
  return is_ring(cp) ? ring_forward(in, rule, cp) : gather_forward(in, rule, cp);
}

// A view would keep all that it is a view of: of values, the whole projection.
at::Tensor without_more(const at::Tensor& x) { return x.storage().nbytes() > x.nbytes() ? x.contiguous() : x; }

// What backward needs besides tensors.
struct Attended : torch::CustomClassHolder {
  Attended(ContextRule its_rule, ContextParallel its_cp) : rule(std::move(its_rule)), cp(std::move(its_cp)) {}
  ContextRule rule;
  ContextParallel cp;
};

struct ContextAttention : CustomFunction<ContextAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const ContextRule& rule, const ContextParallel& cp, bool recompute) {
    const SoftmaxedHeads f = attention_forward({q, k, v}, rule, cp);
    const at::Tensor out_SBH = by_position(f.out);
    variable_list kept = {without_more(q), without_more(k), without_more(v)};
    if (!recompute) kept.insert(kept.end(), {out_SBH, f.log_sum_exp});
    ctx->save_for_backward(std::move(kept));
    ctx->saved_data["attended"] = c10::IValue::make_capsule(c10::make_intrusive<Attended>(rule, cp));
    return out_SBH;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const SoftmaxHeads in{saved[0], saved[1], saved[2]};
    const auto attended = c10::static_intrusive_pointer_cast<Attended>(ctx->saved_data["attended"].toCapsule());
    const ContextRule& rule = attended->rule;
    const ContextParallel& cp = attended->cp;
    const auto by_head = [&](const at::Tensor& x_SBH) {
      return x_SBH.reshape({x_SBH.size(0), x_SBH.size(1), in.q.size(1), -1}).permute({1, 2, 0, 3});
    };
    SoftmaxedHeads f;
    if (saved.size() == 3) {
      const RecomputeScope uncounted;
      f = attention_forward(in, rule, cp);
    } else {
      f = {by_head(saved[3]), saved[4]};
    }
    const at::Tensor grad_out = by_head(grads[0]);
    const SoftmaxHeads d =
        is_ring(cp) ? ring_backward(in, f, grad_out, rule, cp) : gather_backward(in, f, grad_out, rule, cp);
    const at::ScalarType type = in.q.scalar_type();
    const NoCostScope within_the_kernel;
    return {d.q.to(type), d.k.to(type), d.v.to(type), {}, {}, {}};
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

at::Tensor context_attention(const SoftmaxHeads& in, const ContextRule& rule, const ContextParallel& cp,
                             bool recompute) {
  return ContextAttention::apply(in.q, in.k, in.v, rule, cp, recompute);
}

}  // namespace ranklab
