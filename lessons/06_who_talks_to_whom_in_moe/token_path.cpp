// The lesson's own dispatch and combine: rows are sorted by expert through an index, on the plain data of tensors.
#include <algorithm>
#include <numeric>

#include "lessons/06_who_talks_to_whom_in_moe/moe_layer.h"

namespace ranklab::lesson {
namespace {

// The copies sorted by expert, and by token within an expert.
std::vector<size_t> sorted_copies(const Routing& routing) {
  std::vector<size_t> order(routing.expert.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t copy) { return routing.expert[copy]; });
  return order;
}

std::vector<size_t> numbers_of(const std::vector<size_t>& rows, size_t hidden) {
  std::vector<size_t> numbers = rows;
  for (size_t& count : numbers) count *= hidden;
  return numbers;
}

size_t total(const std::vector<size_t>& rows) { return std::accumulate(rows.begin(), rows.end(), size_t{0}); }

void dispatch_straight(Comm& ep, const Routing& routing, size_t hidden, std::span<const double> x, Trip& trip) {
  const auto ranks = static_cast<size_t>(ep.size());
  std::vector<double> counts(ranks, 0.0), expected(ranks, 0.0);
  for (const int expert : routing.expert) ++counts[static_cast<size_t>(expert)];
  const std::vector<size_t> one(ranks, 1);
  ep.all_to_all(counts, one, expected, one);
  trip.send_rows.assign(counts.begin(), counts.end());
  trip.recv_rows.assign(expected.begin(), expected.end());
  const std::vector<size_t> order = sorted_copies(routing);
  trip.place.resize(order.size());
  std::vector<double> outbox;
  for (size_t place = 0; place < order.size(); ++place) {
    trip.place[order[place]] = place;
    const std::span<const double> token = row(x, order[place] / kChoices, hidden);
    outbox.insert(outbox.end(), token.begin(), token.end());
  }
  trip.inbox.resize(total(trip.recv_rows) * hidden);
  ep.all_to_all(outbox, numbers_of(trip.send_rows, hidden), trip.inbox, numbers_of(trip.recv_rows, hidden));
}

void combine_straight(Comm& ep, const Routing& routing, size_t hidden, const Trip& trip, std::span<const double> y,
                      std::span<double> out) {
  std::vector<double> back(total(trip.send_rows) * hidden);
  ep.all_to_all(y, numbers_of(trip.recv_rows, hidden), back, numbers_of(trip.send_rows, hidden));
  for (size_t copy = 0; copy < trip.place.size(); ++copy) {
    const std::span<const double> from = row(std::span<const double>(back), trip.place[copy], hidden);
    const std::span<double> to = row(out, copy / kChoices, hidden);
    for (size_t i = 0; i < hidden; ++i) to[i] += routing.weight[copy] * from[i];
  }
}

}  // namespace

TokenPath straight_path() { return {dispatch_straight, combine_straight}; }

}  // namespace ranklab::lesson
