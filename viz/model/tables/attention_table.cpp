#include "viz/model/tables/attention_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace ranklab::viz {
namespace {

constexpr double kMostPairs = 1e15;  // limit for a damaged file, so that sums stay finite

int64_t whole_within(double value, int64_t most) {
  return std::isfinite(value) ? static_cast<int64_t>(std::clamp(value, 0.0, static_cast<double>(most))) : 0;
}

AttentionPass pass_of(std::string_view name) {
  for (const AttentionPass pass : {AttentionPass::kBackward, AttentionPass::kRecompute})
    if (name.ends_with(kAttentionPasses[static_cast<size_t>(pass)])) return pass;
  return AttentionPass::kForward;
}

// The name of the module that encloses the event, such as "layers.3.attention".
std::string module_around(const TraceStore& store, EventRef ref) {
  const std::optional<EventPlace> place = store.place_of(ref);
  if (!place) return {};
  const Row& row = store.rank(ref.rank_index).rows[place->row];
  for (size_t depth = place->depth; depth-- > 0;) {
    const Track& track = row.tracks[depth];
    const size_t at = track.first_ending_after(store.begin_ns(ref));
    if (at == track.size()) continue;
    const EventRef around{ref.rank_index, track.event[at]};
    if (store.event(around).kind != EventKind::kModule) continue;
    const std::string_view name = store.name(around);
    return std::string(name.substr(0, name.find(' ')));
  }
  return {};
}

// The uses of one rank, in order. A use ends when a tile occurs again, because the next layer computes the same tiles.
class RankUses {
 public:
  RankUses(const TraceStore& store, const Window& window, size_t rank) : store_(store), rank_(rank) {
    const std::vector<Event>& events = store.trace(rank).events;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < events.size(); ++i)
      if (events[i].kind == EventKind::kAttention && window.has(events[i], store.clock())) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return begin_ns(events[a], store.clock()) < begin_ns(events[b], store.clock());
    });
    for (const uint32_t i : order) read({rank, i});
  }
  std::vector<AttentionUse> take() { return std::move(uses_); }

 private:
  void read(EventRef ref) {
    const Event& event = store_.event(ref);
    const std::span<const double> numbers = store_.array(rank_, event);
    if (numbers.size() < kAttentionBlocks + kAttentionBlockNumbers) return;
    AttentionUse of;
    of.pass = pass_of(store_.name(ref));
    of.step = event.step;
    of.microbatch = event.microbatch;
    of.positions = whole_within(numbers[kAttentionPositions], kBytesLimit);
    of.chunks = static_cast<int>(std::max<int64_t>(1, whole_within(numbers[kAttentionChunks], kMostChunks)));
    of.striped = numbers[kAttentionStriped] == 1;
    of.range = {store_.begin_ns(ref), std::max(store_.begin_ns(ref), store_.end_ns(ref))};
    std::vector<AttentionTile> tiles;
    for (size_t i = kAttentionBlocks; i + kAttentionBlockNumbers <= numbers.size(); i += kAttentionBlockNumbers) {
      const double pairs = std::isfinite(numbers[i + 2]) ? std::clamp(numbers[i + 2], 0.0, kMostPairs) : 0;
      tiles.push_back({.query = static_cast<int>(whole_within(numbers[i], of.chunks - 1)),
                       .key = static_cast<int>(whole_within(numbers[i + 1], of.chunks - 1)),
                       .pairs = pairs,
                       .range = of.range,
                       .event = ref});
    }
    add(std::move(of), std::move(tiles));
  }

  void add(AttentionUse of, std::vector<AttentionTile> tiles) {
    const auto seen = [&](const AttentionTile& tile) { return seen_.contains({tile.query, tile.key}); };
    const bool same = !uses_.empty() && uses_.back().pass == of.pass && uses_.back().step == of.step &&
                      uses_.back().microbatch == of.microbatch && uses_.back().chunks == of.chunks;
    if (!same || std::ranges::any_of(tiles, seen)) {
      of.module = module_around(store_, tiles.front().event);
      of.tiles.resize(1);
      uses_.push_back(std::move(of));
      seen_.clear();
    }
    AttentionUse& use = uses_.back();
    for (const AttentionTile& tile : tiles) {
      seen_.insert({tile.query, tile.key});
      use.range.end_ns = std::max(use.range.end_ns, tile.range.end_ns);
      use.tiles[0].push_back(tile);
    }
  }

  const TraceStore& store_;
  size_t rank_;
  std::vector<AttentionUse> uses_;
  std::set<std::pair<int, int>> seen_;  // tiles of the current use
};

std::vector<AttentionGroup> groups_of(const TraceStore& store) {
  std::vector<AttentionGroup> groups;
  std::set<std::vector<int>> known;
  for (const RankTrace& trace : store.traces()) {
    const std::vector<int>* ranks = group_of(trace, Axis::kCp);
    if (ranks == nullptr || ranks->size() < 2 || !known.insert(*ranks).second) continue;
    AttentionGroup& group = groups.emplace_back();
    for (const int rank : *ranks)
      if (const auto index = store.index_of_rank(rank)) group.members.push_back(*index);
  }
  return groups;
}

// The i-th use of each member belongs to the same layer and microbatch, because all members run the same program.
void join_uses(const TraceStore& store, const Window& window, AttentionGroup& group) {
  for (size_t member = 0; member < group.members.size(); ++member) {
    std::vector<AttentionUse> own = RankUses(store, window, group.members[member]).take();
    for (size_t i = 0; i < own.size(); ++i) {
      if (i == group.uses.size()) {
        group.uses.push_back(own[i]);
        group.uses[i].tiles.assign(group.members.size(), {});
      }
      AttentionUse& use = group.uses[i];
      if (use.chunks != own[i].chunks) continue;  // not one of our traces
      use.range.begin_ns = std::min(use.range.begin_ns, own[i].range.begin_ns);
      use.range.end_ns = std::max(use.range.end_ns, own[i].range.end_ns);
      use.tiles[member] = std::move(own[i].tiles[0]);
    }
  }
}

}  // namespace

size_t AttentionUse::sharers() const {
  if (tiles.empty() || tiles.front().empty()) return 1;
  const AttentionTile& first = tiles.front().front();
  return static_cast<size_t>(std::ranges::count_if(tiles, [&](const std::vector<AttentionTile>& own) {
    return std::ranges::any_of(
        own, [&](const AttentionTile& tile) { return tile.query == first.query && tile.key == first.key; });
  }));
}

double AttentionUse::pairs(size_t member) const {
  if (by_heads()) return tiles[member].empty() ? 0 : 1;  // all ranks have the same number of heads
  return std::accumulate(tiles[member].begin(), tiles[member].end(), 0.0,
                         [](double sum, const AttentionTile& tile) { return sum + tile.pairs; });
}

double AttentionUse::mean_pairs() const {
  double sum = 0;
  for (size_t member = 0; member < tiles.size(); ++member) sum += pairs(member);
  return tiles.empty() ? 0 : sum / static_cast<double>(tiles.size());
}

double AttentionUse::of_mean(size_t member) const {
  const double mean = mean_pairs();
  return mean > 0 ? pairs(member) / mean : 0;
}

size_t AttentionUse::fullest() const {
  size_t most = 0;
  for (size_t member = 1; member < tiles.size(); ++member)
    if (pairs(member) > pairs(most)) most = member;
  return most;
}

bool AttentionUse::whole_triangle() const {
  const auto s = static_cast<double>(positions);
  const double whole = s * (s + 1) / 2 * static_cast<double>(sharers());
  return !by_heads() && mean_pairs() * static_cast<double>(tiles.size()) == whole;
}

int64_t AttentionUse::busy_ns(size_t member) const {
  int64_t sum = 0;
  std::optional<EventRef> counted;
  for (const AttentionTile& tile : tiles[member]) {
    if (counted == tile.event) continue;
    counted = tile.event;
    sum += tile.range.length_ns();
  }
  return sum;
}

bool AttentionGroup::has(size_t rank_index) const {
  return std::find(members.begin(), members.end(), rank_index) != members.end();
}

size_t AttentionGroup::at(int64_t time_ns) const {
  const auto after = std::upper_bound(uses.begin(), uses.end(), time_ns,
                                      [](int64_t time, const AttentionUse& use) { return time < use.range.begin_ns; });
  return after == uses.begin() ? 0 : static_cast<size_t>(after - uses.begin()) - 1;
}

AttentionTable attention_table(const TraceStore& store, const Window& window) {
  AttentionTable table;
  for (AttentionGroup& group : groups_of(store)) {
    join_uses(store, window, group);
    if (group.uses.empty()) continue;
    std::stable_sort(group.uses.begin(), group.uses.end(),
                     [](const AttentionUse& a, const AttentionUse& b) { return a.range.begin_ns < b.range.begin_ns; });
    table.groups.push_back(std::move(group));
  }
  std::ranges::sort(table.groups, {}, [](const AttentionGroup& group) { return group.members.front(); });
  return table;
}

}  // namespace ranklab::viz
