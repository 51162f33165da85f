#include "lessons/12_split_a_long_sequence/ring_run.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/numbers/philox.h"
#include "core/sim/aten.h"

namespace ranklab::lesson {
namespace {

at::Tensor random_heads(const char* name, int64_t positions) {
  at::Tensor out = at::empty({kRingHeads, positions, kRingHeadDim}, at::kDouble);
  const RandomStream stream(12, RandomPurpose::kTest, name);
  std::vector<float> normal(static_cast<size_t>(out.numel()));
  stream.fill_normal(0, normal);
  std::ranges::transform(normal, out.mutable_data_ptr<double>(), [](float x) { return static_cast<double>(x); });
  return out;
}

at::Tensor index_of(const std::vector<size_t>& positions) {
  const std::vector<int64_t> index(positions.begin(), positions.end());
  return at::tensor(index, at::kLong);
}

// Heads [H, S, D] at some positions.
struct Heads {
  at::Tensor q, k, v;

  Heads rows(const at::Tensor& index) const {
    return {q.index_select(1, index), k.index_select(1, index), v.index_select(1, index)};
  }
};

struct Attended {
  at::Tensor out_HSD, log_sum_exp_HS;
};

// Written in plain operators, because the reference must not be the code that it checks
// (core/nn/attention/block_attention.h).
Attended softmax(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& seen) {
  const at::Tensor hidden = seen.logical_not();
  const double scale = 1 / std::sqrt(static_cast<double>(kRingHeadDim));
  const at::Tensor scores = (at::matmul(q, k.transpose(1, 2)) * scale).masked_fill(hidden, kNothing);
  const at::Tensor log_sum_exp = at::logsumexp(scores, {-1});
  // If a query attends to nothing, this is infinity minus infinity.
  const at::Tensor weights = (scores - log_sum_exp.unsqueeze(-1)).exp().masked_fill(hidden, 0.0);
  return {at::matmul(weights, v), log_sum_exp};
}

at::Tensor seen_by(const at::Tensor& queries, const at::Tensor& keys) { return keys.le(queries.unsqueeze(1)); }

std::vector<double> numbers_of(const at::Tensor& x) {
  const at::Tensor flat = x.contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

class RankPart final : public Part {
 public:
  RankPart(RankContext& context, const Heads& sequence, const Positions& positions) : context_(context) {
    const NoCostScope no_cost;
    for (const auto& of_rank : positions) positions_.push_back(index_of(of_rank));
    heads_ = sequence.rows(queries());
    keys_values_ = numbers_of(at::stack({heads_.k, heads_.v}));
  }

  std::span<const double> keys_values() const override { return keys_values_; }

  Partial attend(std::span<const double> keys_values, int owner) const override {
    check(keys_values, owner);
    const int64_t begin_ns = context_.clock().now_ns();
    const at::Tensor& keys = positions_[static_cast<size_t>(owner)];
    charge(keys);
    context_.tracer().record({.kind = EventKind::kCompute,
                              .name = context_.tracer().intern("block"),
                              .virtual_begin_ns = begin_ns,
                              .virtual_end_ns = context_.clock().now_ns()});
    const NoCostScope charged_already;
    const at::Tensor kv = at::from_blob(const_cast<double*>(keys_values.data()),
                                        {2, kRingHeads, keys.numel(), kRingHeadDim}, at::kDouble);
    const Attended block = softmax(heads_.q, kv[0], kv[1], seen_by(queries(), keys));
    return {static_cast<size_t>(kRingHeadDim), numbers_of(block.out_HSD), numbers_of(block.log_sum_exp_HS)};
  }

  const at::Tensor& queries() const { return positions_[static_cast<size_t>(context_.global_rank())]; }

 private:
  void check(std::span<const double> keys_values, int owner) const {
    const auto n = static_cast<int>(positions_.size());
    RANKLAB_CHECK(owner >= 0 && owner < n, ErrorKind::kInvalidArgument, .where = "attend",
                  .what = "there is no such owner", .got = "rank " + std::to_string(owner),
                  .want = "0 to " + std::to_string(n - 1), .fix = "let ranks go round: (rank + n - s) % n");
    RANKLAB_CHECK(keys_values.size() == keys_values_.size(), ErrorKind::kInvalidArgument, .where = "attend",
                  .what = "these are not one rank's keys and values",
                  .got = std::to_string(keys_values.size()) + " numbers",
                  .want = std::to_string(keys_values_.size()) + ", as many as in keys_values()",
                  .fix = "make the buffer that you receive in as long as keys_values()");
  }

  // Costs as much as one kernel that skips hidden pairs; for a block that no query attends to, no kernel is launched.
  void charge(const at::Tensor& keys) const {
    int64_t pairs = 0;
    {
      const NoCostScope no_cost;
      pairs = seen_by(queries(), keys).sum().item<int64_t>();
    }
    if (pairs == 0) return;
    const CostScope one_kernel("attention", static_cast<double>(4 * pairs * kRingHeads * kRingHeadDim), 0,
                               DType::kFloat64);
  }

  RankContext& context_;
  std::vector<at::Tensor> positions_;
  Heads heads_;
  std::vector<double> keys_values_;
};

double output_error(const Partial& got, const at::Tensor& want_HSD) {
  const std::vector<double> want = numbers_of(want_HSD);
  if (got.out.size() != want.size()) return HUGE_VAL;
  double error = 0, largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double off = std::abs(got.out[i] - want[i]);
    error = off <= HUGE_VAL ? std::max(error, off) : HUGE_VAL;
    largest = std::max(largest, std::abs(want[i]));
  }
  return error / largest;
}

int64_t hops_in_advance(const RankTrace& trace, int ranks) {
  std::vector<int64_t> posted, begun;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kCollective && event.verb == Verb::kSend) posted.push_back(event.virtual_posted_ns);
    if (event.kind == EventKind::kCompute) begun.push_back(event.virtual_begin_ns);
  }
  std::ranges::sort(posted);
  int64_t count = 0;
  for (size_t hop = 0; hop + 1 < static_cast<size_t>(ranks) && hop < std::min(posted.size(), begun.size()); ++hop)
    count += posted[hop] <= begun[hop] ? 1 : 0;
  return count;
}

}  // namespace

Ring straight_ring() {
  return [](Comm& cp, const Part& mine, Partial&) {
    const int n = cp.size(), rank = cp.rank();
    std::vector<double> here(mine.keys_values().begin(), mine.keys_values().end()), coming(here.size());
    for (int s = 0; s < n; ++s) {
      const int ticket = s + 1 < n ? cp.start_send_recv(here, (rank + 1) % n, coming, (rank + n - 1) % n) : 0;
      mine.attend(here, (rank + n - s) % n);
      if (s + 1 == n) break;
      cp.wait(ticket);
      here.swap(coming);
    }
  };
}

int64_t RingRun::most_hops() const {
  int64_t most = 0;
  for (const RankRecord& record : records) most = std::max(most, record.calls(Verb::kSend));
  return most;
}

int64_t RingRun::most_bytes() const {
  int64_t most = 0;
  for (const RankRecord& record : records) most = std::max(most, record.sent_bytes());
  return most;
}

RingRun run_ring(const Positions& positions, const Ring& ring, const ExerciseLibrary* exercise) {
  const auto n = static_cast<int>(positions.size());
  const auto each = static_cast<int64_t>(positions[0].size());
  const Heads sequence{random_heads("q", n * each), random_heads("k", n * each), random_heads("v", n * each)};
  const at::Tensor all = at::arange(n * each, at::TensorOptions(at::kLong));
  const at::Tensor want_HSD = softmax(sequence.q, sequence.k, sequence.v, seen_by(all, all)).out_HSD;
  std::vector<double> errors(positions.size());
  RingRun run;
  run.records =
      run_ranks({.dims = {.world = n, .cp = n}, .hardware = "laptop", .exercise = exercise}, [&](RankContext& context) {
        const RankPart part(context, sequence, positions);
        const auto cp = make_comm(context.comm(Axis::kCp));
        const size_t queries = static_cast<size_t>(kRingHeads * each), width = static_cast<size_t>(kRingHeadDim);
        Partial total{width, std::vector<double>(queries * width), std::vector<double>(queries, kNothing)};
        ring(*cp, part, total);
        const NoCostScope no_cost;
        errors[static_cast<size_t>(context.global_rank())] =
            output_error(total, want_HSD.index_select(1, part.queries()));
      });
  run.error = std::ranges::max(errors);
  for (const RankRecord& record : run.records) {
    run.time_ns = std::max(run.time_ns, record.virtual_ns);
    run.hops_in_advance += hops_in_advance(record.trace, n);
  }
  return run;
}

}  // namespace ranklab::lesson
