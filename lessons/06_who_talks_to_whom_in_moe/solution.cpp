// Lesson 6, solution.
#include <algorithm>
#include <numeric>

#include "exercise.h"

using namespace ranklab::lesson;

namespace {

std::vector<size_t> times(const std::vector<size_t>& rows, size_t hidden) {
  std::vector<size_t> numbers;
  for (const size_t count : rows) numbers.push_back(count * hidden);
  return numbers;
}

size_t sum(const std::vector<size_t>& rows) { return std::accumulate(rows.begin(), rows.end(), size_t{0}); }

}  // namespace

extern "C" void count_copies(const Routing& routing, std::span<size_t> rows) {
  for (const int expert : routing.expert) ++rows[static_cast<size_t>(expert)];
}

extern "C" void dispatch(Comm& ep, const Routing& routing, size_t hidden, std::span<const double> x, Trip& trip) {
  const auto ranks = static_cast<size_t>(ep.size());
  trip.send_rows.assign(ranks, 0);
  count_copies(routing, trip.send_rows);

  // How many to expect: each rank sends each other rank one number.
  std::vector<double> mine(trip.send_rows.begin(), trip.send_rows.end()), theirs(ranks);
  const std::vector<size_t> one_each(ranks, 1);
  ep.all_to_all(mine, one_each, theirs, one_each);
  trip.recv_rows.assign(theirs.begin(), theirs.end());

  std::vector<size_t> next(ranks, 0);  // where the next copy for a rank is written
  std::partial_sum(trip.send_rows.begin(), trip.send_rows.end() - 1, next.begin() + 1);
  std::vector<double> outbox(sum(trip.send_rows) * hidden);
  for (size_t copy = 0; copy < routing.expert.size(); ++copy) {
    const size_t place = next[static_cast<size_t>(routing.expert[copy])]++;
    trip.place.push_back(place);
    std::ranges::copy(row(x, copy / kChoices, hidden), row(std::span(outbox), place, hidden).begin());
  }
  trip.inbox.resize(sum(trip.recv_rows) * hidden);
  ep.all_to_all(outbox, times(trip.send_rows, hidden), trip.inbox, times(trip.recv_rows, hidden));
}

extern "C" void combine(Comm& ep, const Routing& routing, size_t hidden, const Trip& trip, std::span<const double> y,
                        std::span<double> out) {
  std::vector<double> back(sum(trip.send_rows) * hidden);
  ep.all_to_all(y, times(trip.recv_rows, hidden), back, times(trip.send_rows, hidden));
  std::ranges::fill(out, 0.0);
  for (size_t copy = 0; copy < trip.place.size(); ++copy) {
    const std::span<const double> from = row(std::span<const double>(back), trip.place[copy], hidden);
    const std::span<double> to = row(out, copy / kChoices, hidden);
    for (size_t i = 0; i < hidden; ++i) to[i] += routing.weight[copy] * from[i];
  }
}

extern "C" void update_bias(Comm& ep, std::span<const double> load, double speed, std::span<double> bias) {
  std::vector<double> all(load.begin(), load.end());
  ep.all_reduce(all);
  const double mean = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  for (size_t e = 0; e < bias.size(); ++e) bias[e] += all[e] > mean ? -speed : all[e] < mean ? speed : 0;
}
