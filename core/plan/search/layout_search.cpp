#include "core/plan/search/layout_search.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "core/plan/search/layout_bound.h"

namespace ranklab {
namespace {

constexpr double kRoughSlack = 1.3;  // the factor by which the rough estimate of memory may be wrong
constexpr size_t kRefined = 4;

class Search {
 public:
  Search(const TrainConfig& config, const HardwareProfile& profile, const SearchLimits& limits, const LayoutPlans& plan)
      : config_(config), profile_(profile), limits_(limits), plan_(plan) {}

  std::vector<PlannedLayout> run() {
    std::vector<LayoutChoice> first;
    for (const LayoutChoice& one : layout_candidates(config_, profile_, limits_.pinned))
      first.push_back(made_to_fit(one));
    sort_roughly(first);
    // Half of the plans are for variety, the other half for the neighbourhood of the best.
    for (const LayoutChoice& one : first)
      if (static_cast<int>(rows_.size()) < limits_.plans / 2 && !known(one)) append(one);
    settle(kRefined, true);
    while (static_cast<int>(rows_.size()) < limits_.plans && refine()) settle(kRefined, true);
    settle(static_cast<size_t>(limits_.best), false);
    std::vector<PlannedLayout> planned;
    for (Row& row : rows_)
      if (row.planned) planned.push_back(std::move(row.plan));
    return planned;
  }

 private:
  struct Row {
    PlannedLayout plan = {};
    size_t number = 0;     // order in which they were added
    bool planned = false;  // if false, the step takes at least step_s, and the layout may fit
  };

  double rough_step(const LayoutChoice& one) const { return rough_cost(config_, profile_, one).step_s; }
  bool roughly_fits(const LayoutChoice& one) const {
    return rough_cost(config_, profile_, one).bytes <= limits_.bytes * kRoughSlack;
  }
  void sort_roughly(std::vector<LayoutChoice>& all) const {
    std::erase_if(all, [&](const LayoutChoice& one) { return !roughly_fits(one); });
    std::ranges::stable_sort(all, {}, [&](const LayoutChoice& one) { return rough_step(one); });
  }

  // With the least recomputation and sharding that makes it fit, according to the rough estimate.
  LayoutChoice made_to_fit(LayoutChoice one) const {
    for (const char* recompute : {"none", "selective", "full"}) {
      for (const int stage : {1, 2, 3}) {
        if (stage == 3 && one.pp > 1) continue;
        one.recompute = recompute;
        one.zero_stage = has_replicas(config_, one) ? stage : 0;
        limits_.pinned.apply(one);
        settle_grad_sync(config_, one);
        if (rough_cost(config_, profile_, one).bytes <= limits_.bytes) return one;
      }
    }
    return one;
  }

  bool known(const LayoutChoice& one) const {
    return std::ranges::any_of(rows_, [&](const Row& row) { return row.plan.choice == one; });
  }
  bool is_planned(const LayoutChoice& one) const {
    return std::ranges::find(planned_, one, &PlannedLayout::choice) != planned_.end();
  }
  void append(const LayoutChoice& one) {
    rows_.push_back({.plan = {.choice = one, .refused = {}}, .number = rows_.size()});
  }
  double at_least(const LayoutChoice& one) const { return limits_.best == 0 ? 0 : bounds_.step_at_least(config_, one); }

  // Plans the layouts that are not planned yet.
  void make_plans(const std::vector<LayoutChoice>& all) {
    std::vector<LayoutChoice> missing;
    for (const LayoutChoice& one : all)
      if (!is_planned(one)) missing.push_back(one);
    if (missing.empty()) return;
    for (PlannedLayout& row : plan_(missing)) {
      if (row.refused.empty()) bounds_.learn(row.choice, row.pass_s);
      planned_.push_back(std::move(row));
    }
  }

  bool fits(const PlannedLayout& row) const { return row.refused.empty() && row.bytes <= limits_.bytes; }
  // A layout that is not planned yet is placed where it would be at best.
  void sort() {
    for (Row& row : rows_) {
      if (row.planned) continue;
      const auto planned = std::ranges::find(planned_, row.plan.choice, &PlannedLayout::choice);
      row.planned = planned != planned_.end();
      if (row.planned)
        row.plan = *planned;
      else
        row.plan.step_s = at_least(row.plan.choice);
    }
    std::ranges::sort(rows_, [&](const Row& one, const Row& other) {
      const PlannedLayout &a = one.plan, &b = other.plan;
      if (fits(a) != fits(b)) return fits(a);
      if (fits(a))
        return std::tuple(a.step_s, one.planned, one.number) < std::tuple(b.step_s, other.planned, other.number);
      if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
      const bool by_bytes = a.refused.empty() && a.bytes != b.bytes;
      return by_bytes ? a.bytes < b.bytes : one.number < other.number;
    });
  }

  static bool same_sizes(const LayoutChoice& a, const LayoutChoice& b) {
    return a.tp == b.tp && a.pp == b.pp && a.cp == b.cp && a.ep == b.ep;
  }

  // Rows that may come before the first `count` rows that are planned and fit (with `sizes`: before rows of that many
  // different axis sizes).
  std::vector<LayoutChoice> open_before(size_t count, bool sizes) const {
    std::vector<LayoutChoice> open, best;
    for (const Row& row : rows_) {
      const LayoutChoice& one = row.plan.choice;
      if (limits_.best > 0 && (best.size() == count || !fits(row.plan))) break;
      const auto alike = [&](const LayoutChoice& other) { return same_sizes(other, one); };
      if (limits_.best > 0 && sizes && std::ranges::any_of(best, alike)) continue;
      (row.planned ? best : open).push_back(one);
    }
    return open;
  }

  // Plans until nothing is open: first one layout of each kind of passes, which gives bounds for others of that kind,
  // then the most promising ones. Without bounds, all are planned at once.
  void settle(size_t count, bool sizes) {
    for (sort();; sort()) {
      const std::vector<LayoutChoice> open = open_before(count, sizes);
      if (open.empty()) return;
      std::vector<LayoutChoice> next;
      for (const LayoutChoice& one : open) {
        const auto like_it = [&](const LayoutChoice& other) { return LayoutBounds::alike(one, other); };
        const bool tells = at_least(one) == 0 && std::ranges::none_of(next, like_it);
        if (limits_.best == 0 || tells || static_cast<int>(next.size()) < limits_.at_once) next.push_back(one);
      }
      make_plans(next);
    }
  }

  // The best layouts of different axis sizes, and those that would be better if they fitted.
  std::vector<LayoutChoice> promising() const {
    std::vector<const PlannedLayout*> best, larger;
    for (const Row& row : rows_) {
      if (!row.planned) continue;
      const auto alike = [&](const PlannedLayout* other) { return same_sizes(other->choice, row.plan.choice); };
      if (fits(row.plan) && std::ranges::any_of(best, alike)) continue;
      if (fits(row.plan))
        best.push_back(&row.plan);
      else if (row.plan.refused.empty() && (best.empty() || row.plan.step_s < best.front()->step_s))
        larger.push_back(&row.plan);
    }
    std::ranges::stable_sort(larger, {}, [](const PlannedLayout* row) { return row->step_s; });
    std::vector<LayoutChoice> all;
    for (size_t i = 0; i < kRefined; ++i) {
      if (i < best.size()) all.push_back(best[i]->choice);
      if (i < larger.size()) all.push_back(larger[i]->choice);
    }
    return all;
  }

  // Adds one more layout around the promising ones; false if all are known. The layouts after it would come next if it
  // changes nothing.
  bool refine() {
    std::vector<LayoutChoice> coming;
    for (const LayoutChoice& from : promising()) {
      std::vector<LayoutChoice> beside = neighbours(config_, from);
      std::erase_if(beside, [&](const LayoutChoice& one) { return !limits_.pinned.holds(config_, one); });
      sort_roughly(beside);
      for (const LayoutChoice& one : beside)
        if (!known(one) && std::ranges::find(coming, one) == coming.end()) coming.push_back(one);
    }
    if (coming.empty()) return false;
    const double slowest = slowest_of_interest();
    const auto most = std::min(static_cast<size_t>(limits_.plans) - rows_.size(), static_cast<size_t>(limits_.at_once));
    std::vector<LayoutChoice> ahead;
    for (const LayoutChoice& one : coming)
      if (ahead.size() < most && !is_planned(one) && at_least(one) < slowest) ahead.push_back(one);
    if (!ahead.empty() && ahead[0] == coming[0]) make_plans(ahead);
    append(coming[0]);
    return true;
  }

  // The slowest step among the best axis sizes; if there are fewer sizes, any step matters.
  double slowest_of_interest() const {
    std::vector<LayoutChoice> sizes;
    for (const Row& row : rows_) {
      const auto alike = [&](const LayoutChoice& other) { return same_sizes(other, row.plan.choice); };
      if (!row.planned || !fits(row.plan) || std::ranges::any_of(sizes, alike)) continue;
      sizes.push_back(row.plan.choice);
      if (sizes.size() == kRefined) return row.plan.step_s;
    }
    return std::numeric_limits<double>::infinity();
  }

  const TrainConfig& config_;
  const HardwareProfile& profile_;
  const SearchLimits& limits_;
  const LayoutPlans& plan_;
  LayoutBounds bounds_;
  std::vector<PlannedLayout> planned_;  // includes plans that have not been used yet
  std::vector<Row> rows_;
};

}  // namespace

std::vector<PlannedLayout> search_layouts(const TrainConfig& config, const HardwareProfile& profile,
                                          const SearchLimits& limits, const LayoutPlans& plan) {
  return Search(config, profile, limits, plan).run();
}

bool on_front(const std::vector<PlannedLayout>& rows, const PlannedLayout& row, double most_bytes) {
  return std::ranges::none_of(rows, [&](const PlannedLayout& other) {
    const bool as_good = other.step_s <= row.step_s && other.bytes <= row.bytes;
    const bool better = other.step_s < row.step_s || other.bytes < row.bytes;
    return other.refused.empty() && other.bytes <= most_bytes && as_good && better;
  });
}

}  // namespace ranklab
