#include "core/plan/layout_search.h"

#include <algorithm>
#include <utility>

namespace ranklab {
namespace {

constexpr double kRoughSlack = 1.5;  // rough memory may be off by so much
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
    // Half of the plans for variety, the other half around the best of them.
    std::vector<LayoutChoice> variety;
    for (const LayoutChoice& one : first)
      if (static_cast<int>(variety.size()) < limits_.plans / 2 && std::ranges::find(variety, one) == variety.end())
        variety.push_back(one);
    make_plans(variety, variety.size());
    for (const LayoutChoice& one : variety) add(one);
    while (static_cast<int>(rows_.size()) < limits_.plans && refine()) {
    }
    return std::move(rows_);
  }

 private:
  double rough_step(const LayoutChoice& one) const { return rough_cost(config_, profile_, one).step_s; }
  bool roughly_fits(const LayoutChoice& one) const {
    return rough_cost(config_, profile_, one).bytes <= limits_.bytes * kRoughSlack;
  }
  void sort_roughly(std::vector<LayoutChoice>& all) const {
    std::erase_if(all, [&](const LayoutChoice& one) { return !roughly_fits(one); });
    std::ranges::stable_sort(all, {}, [&](const LayoutChoice& one) { return rough_step(one); });
  }

  // With the least recomputation and sharding that lets it fit, roughly.
  LayoutChoice made_to_fit(LayoutChoice one) const {
    for (const char* recompute : {"none", "selective", "full"}) {
      for (const int stage : {1, 2, 3}) {
        if (stage == 3 && one.pp > 1) continue;
        one.recompute = recompute;
        one.zero_stage = stage;
        limits_.pinned.apply(one);
        if (rough_cost(config_, profile_, one).bytes <= limits_.bytes) return one;
      }
    }
    return one;
  }

  static bool among(const std::vector<PlannedLayout>& rows, const LayoutChoice& one) {
    return std::ranges::find(rows, one, &PlannedLayout::choice) != rows.end();
  }
  // Plans the first of them that are not planned yet, so many at most.
  void make_plans(const std::vector<LayoutChoice>& all, size_t most) {
    std::vector<LayoutChoice> missing;
    for (const LayoutChoice& one : all) {
      const bool twice = among(planned_, one) || std::ranges::find(missing, one) != missing.end();
      if (!twice && missing.size() < most) missing.push_back(one);
    }
    if (missing.empty()) return;
    for (PlannedLayout& row : plan_(missing)) planned_.push_back(std::move(row));
  }
  void add(const LayoutChoice& one) {
    rows_.push_back(*std::ranges::find(planned_, one, &PlannedLayout::choice));
    sort();
  }
  bool fits(const PlannedLayout& row) const { return row.refused.empty() && row.bytes <= limits_.bytes; }
  void sort() {
    std::ranges::stable_sort(rows_, [&](const PlannedLayout& a, const PlannedLayout& b) {
      if (fits(a) != fits(b)) return fits(a);
      if (fits(a)) return a.step_s < b.step_s;
      return a.refused.empty() && (!b.refused.empty() || a.bytes < b.bytes);
    });
  }

  static bool same_sizes(const LayoutChoice& a, const LayoutChoice& b) {
    return a.tp == b.tp && a.pp == b.pp && a.cp == b.cp && a.ep == b.ep;
  }

  // The best of different sizes of the axes, and those that would be better if they fitted.
  std::vector<LayoutChoice> promising() const {
    std::vector<const PlannedLayout*> best, larger;
    for (const PlannedLayout& row : rows_) {
      const auto alike = [&](const PlannedLayout* other) { return same_sizes(other->choice, row.choice); };
      if (fits(row) && std::ranges::any_of(best, alike)) continue;
      if (fits(row))
        best.push_back(&row);
      else if (row.refused.empty() && (best.empty() || row.step_s < best.front()->step_s))
        larger.push_back(&row);
    }
    std::ranges::stable_sort(larger, {}, [](const PlannedLayout* row) { return row->step_s; });
    std::vector<LayoutChoice> all;
    for (size_t i = 0; i < kRefined; ++i) {
      if (i < best.size()) all.push_back(best[i]->choice);
      if (i < larger.size()) all.push_back(larger[i]->choice);
    }
    return all;
  }

  // Adds one more layout beside them; false: all are known. Those behind it would come next if it changes nothing.
  bool refine() {
    std::vector<LayoutChoice> coming;
    for (const LayoutChoice& from : promising()) {
      std::vector<LayoutChoice> beside = neighbours(config_, from);
      std::erase_if(beside, [&](const LayoutChoice& one) { return !limits_.pinned.holds(config_, one); });
      sort_roughly(beside);
      for (const LayoutChoice& one : beside)
        if (!among(rows_, one)) coming.push_back(one);
    }
    if (coming.empty()) return false;
    const auto left = static_cast<size_t>(limits_.plans) - rows_.size();
    if (!among(planned_, coming[0])) make_plans(coming, std::min(left, static_cast<size_t>(limits_.at_once)));
    add(coming[0]);
    return true;
  }

  const TrainConfig& config_;
  const HardwareProfile& profile_;
  const SearchLimits& limits_;
  const LayoutPlans& plan_;
  std::vector<PlannedLayout> planned_;  // also those that are not reached yet
  std::vector<PlannedLayout> rows_;
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
