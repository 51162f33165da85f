#include "lessons/06_who_talks_to_whom_in_moe/moe_layer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/base/numbers/philox.h"
#include "core/comm/purpose.h"
#include "core/sim/aten.h"

namespace ranklab::lesson {
namespace {

constexpr size_t kHidden = static_cast<size_t>(kExpertHidden);

at::Tensor random(const std::string& name, std::vector<int64_t> shape, double scale) {
  at::Tensor out = at::empty(shape, at::kDouble);
  const RandomStream stream(6, RandomPurpose::kTest, name);
  std::vector<float> normal(static_cast<size_t>(out.numel()));
  stream.fill_normal(0, normal);
  std::transform(normal.begin(), normal.end(), out.mutable_data_ptr<double>(),
                 [&](float number) { return scale * static_cast<double>(number); });
  return out;
}

std::span<const double> read(const at::Tensor& t) {
  return {t.const_data_ptr<double>(), static_cast<size_t>(t.numel())};
}

struct Expert {
  at::Tensor a_HF, b_FH;
  explicit Expert(int number)
      : a_HF(random("a" + std::to_string(number), {kExpertHidden, kExpertFeatures}, 0.15)),
        b_FH(random("b" + std::to_string(number), {kExpertFeatures, kExpertHidden}, 0.1)) {}
  at::Tensor operator()(const at::Tensor& x_TH) const { return at::mm(at::tanh(at::mm(x_TH, a_HF)), b_FH); }
};

// One rank's routing decisions, and its tokens.
struct RankTokens {
  std::vector<int> expert;
  std::vector<double> weight;
  at::Tensor x_TH;

  // Copies, sorted by expert, are assigned to tokens in two passes: the second half becomes the tokens' second choices.
  RankTokens(int rank, const std::vector<int64_t>& copies) {
    std::vector<int> sorted;
    for (size_t e = 0; e < copies.size(); ++e)
      sorted.insert(sorted.end(), static_cast<size_t>(copies[e]), static_cast<int>(e));
    const size_t tokens = sorted.size() / kChoices;
    const RandomStream stream(6, RandomPurpose::kTest, "weights " + std::to_string(rank));
    for (size_t t = 0; t < tokens; ++t) {
      const double first = 0.2 + 0.6 * static_cast<double>(stream.uniform(t));
      expert.insert(expert.end(), {sorted[t], sorted[t + tokens]});
      weight.insert(weight.end(), {first, 1 - first});
    }
    x_TH = random("x" + std::to_string(rank), {static_cast<int64_t>(tokens), kExpertHidden}, 1.0);
  }
  Routing routing() const { return {expert, weight}; }
  size_t copies() const { return expert.size(); }
  std::span<const double> row_of_copy(size_t copy) const { return row(read(x_TH), copy / kChoices, kHidden); }
};

// The output with all experts on one rank.
at::Tensor dense_output(const RankTokens& mine, const std::vector<Expert>& experts) {
  at::Tensor out = at::zeros_like(mine.x_TH);
  for (size_t e = 0; e < experts.size(); ++e) {
    const at::Tensor y = experts[e](mine.x_TH);
    for (size_t copy = 0; copy < mine.copies(); ++copy) {
      if (mine.expert[copy] != static_cast<int>(e)) continue;
      const auto t = static_cast<int64_t>(copy / kChoices);
      out[t].add_(y[t], mine.weight[copy]);
    }
  }
  return out;
}

using Rows = std::vector<std::vector<double>>;

// The number of copies that are missing from an inbox, changed in it, or should not be there.
int64_t misplaced_rows(const Trip& trip, Rows expected) {
  Rows got;
  for (size_t i = 0; i < trip.inbox.size() / kHidden; ++i) {
    const std::span<const double> one = row(std::span<const double>(trip.inbox), i, kHidden);
    got.emplace_back(one.begin(), one.end());
  }
  std::ranges::sort(got);
  std::ranges::sort(expected);
  Rows common;
  std::ranges::set_intersection(got, expected, std::back_inserter(common));
  return static_cast<int64_t>(std::max(got.size(), expected.size()) - common.size());
}

struct RankResult {
  at::Tensor out_TH, dense_TH;
  int64_t arrived = 0, misplaced = 0, expert_ns = 0;
};

class MoeRank {
 public:
  MoeRank(RankContext& context, const Copies& copies, const TokenPath& path)
      : context_(context), path_(path), me_(static_cast<size_t>(context.global_rank())) {
    const NoCostScope no_cost;
    for (int rank = 0; rank < kExpertRanks; ++rank) {
      tokens_.emplace_back(rank, copies[static_cast<size_t>(rank)]);
      experts_.emplace_back(rank);
    }
  }

  RankResult run() {
    const RankTokens& mine = tokens_[me_];
    const auto ep = make_comm(context_.comm(Axis::kEp));
    RankResult result;
    result.out_TH = at::zeros_like(mine.x_TH);
    Trip trip;
    {
      const PurposeScope purpose(Purpose::kDispatch);
      path_.dispatch(*ep, mine.routing(), kHidden, read(mine.x_TH), trip);
    }
    const at::Tensor y = work(trip, result);
    {
      const PurposeScope purpose(Purpose::kCombine);
      path_.combine(*ep, mine.routing(), kHidden, trip, read(y),
                    {result.out_TH.mutable_data_ptr<double>(), static_cast<size_t>(result.out_TH.numel())});
    }
    const NoCostScope no_cost;
    result.dense_TH = dense_output(mine, experts_);
    result.arrived = static_cast<int64_t>(trip.inbox.size() / kHidden);
    result.misplaced = misplaced_rows(trip, expected_inbox());
    return result;
  }

 private:
  at::Tensor work(Trip& trip, RankResult& result) {
    const auto rows = static_cast<int64_t>(trip.inbox.size() / kHidden);
    const int64_t begin_ns = context_.clock().now_ns();
    const at::Tensor y = experts_[me_](at::from_blob(trip.inbox.data(), {rows, kExpertHidden}, at::kDouble));
    result.expert_ns = context_.clock().now_ns() - begin_ns;
    context_.tracer().record({.kind = EventKind::kCompute,
                              .name = context_.tracer().intern("expert"),
                              .virtual_begin_ns = begin_ns,
                              .virtual_end_ns = context_.clock().now_ns()});
    return y.contiguous();
  }

  Rows expected_inbox() const {
    Rows rows;
    for (const RankTokens& from : tokens_) {
      for (size_t copy = 0; copy < from.copies(); ++copy) {
        if (static_cast<size_t>(from.expert[copy]) != me_) continue;
        const std::span<const double> one = from.row_of_copy(copy);
        rows.emplace_back(one.begin(), one.end());
      }
    }
    return rows;
  }

  RankContext& context_;
  const TokenPath& path_;
  size_t me_;
  std::vector<RankTokens> tokens_;
  std::vector<Expert> experts_;
};

// The bytes that each rank sent to each other rank in its last all_to_all of this kind.
std::vector<std::vector<double>> pairs_of(const std::vector<RankRecord>& records, Purpose purpose) {
  std::vector<std::vector<double>> pairs(kExpertRanks, std::vector<double>(kExpertRanks, 0.0));
  for (size_t rank = 0; rank < records.size(); ++rank) {
    for (const Event& event : records[rank].trace.events) {
      if (event.purpose == purpose && event.verb == Verb::kAllToAll && event.array > 0)
        pairs[rank] = records[rank].trace.arrays[event.array - 1];
    }
  }
  return pairs;
}

}  // namespace

Copies even_router(int64_t tokens) {
  return Copies(kExpertRanks, std::vector<int64_t>(kExpertRanks, 2 * tokens / kExpertRanks));
}

Copies skewed_router() { return Copies(kExpertRanks, {512, 300, 260, 240, 220, 200, 180, 136}); }

Copies ragged_router() {
  Copies copies;
  for (int64_t rank = 0; rank < kExpertRanks; ++rank) {
    std::vector<int64_t>& mine = copies.emplace_back(kExpertRanks, 0);
    if (rank == 5) continue;
    for (int64_t e = 0; e < kExpertRanks; ++e) mine[static_cast<size_t>(e)] = e == 3 ? 0 : (7 * rank + 5 * e) % 13;
    if (std::accumulate(mine.begin(), mine.end(), int64_t{0}) % 2 != 0) ++mine[0];
  }
  return copies;
}

MoeRun run_moe(const Copies& copies, const TokenPath& path, const ExerciseLibrary* exercise) {
  std::vector<RankResult> results(kExpertRanks);
  MoeRun run;
  run.records =
      run_ranks({.dims = {.world = kExpertRanks, .ep = kExpertRanks}, .hardware = "laptop", .exercise = exercise},
                [&](RankContext& context) {
                  const auto rank = static_cast<size_t>(context.global_rank());
                  results[rank] = MoeRank(context, copies, path).run();
                });
  double largest = 0;
  for (const RankResult& result : results) {
    run.arrived += result.arrived;
    run.misplaced += result.misplaced;
    run.slowest_expert_ns = std::max(run.slowest_expert_ns, result.expert_ns);
    if (result.dense_TH.numel() == 0) continue;
    const double error = (result.out_TH - result.dense_TH).abs().max().item<double>();
    if (!(error <= run.error)) run.error = error;  // keeps a NaN
    largest = std::max(largest, result.dense_TH.abs().max().item<double>());
  }
  run.error /= largest;
  for (const RankRecord& record : run.records) run.layer_ns = std::max(run.layer_ns, record.virtual_ns);
  run.dispatch_bytes = pairs_of(run.records, Purpose::kDispatch);
  run.combine_bytes = pairs_of(run.records, Purpose::kCombine);
  run.all_to_alls = run.records[0].calls(Verb::kAllToAll);
  return run;
}

}  // namespace ranklab::lesson
