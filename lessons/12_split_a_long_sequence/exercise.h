// Lesson 12: attention over a sequence that is split over the ranks.
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "../lesson_api.h"

namespace ranklab::lesson {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// The result of queries over some of the keys: for each query
//   out          the mean of these keys' values, weighted by the softmax of its scores over only these keys
//   log_sum_exp  log(sum of exp(score)) over these keys
// A query that attends to none of them has out 0 and log_sum_exp kNothing, the logarithm of 0.
struct Partial {
  size_t width = 0;                 // numbers in a query's output
  std::vector<double> out;          // [queries x width]
  std::vector<double> log_sum_exp;  // [queries]

  size_t queries() const { return log_sum_exp.size(); }
  std::span<double> row(size_t query) { return std::span(out).subspan(query * width, width); }
  std::span<const double> row(size_t query) const { return std::span(out).subspan(query * width, width); }
};

// One rank's part of the sequence.
class Part {
 public:
  virtual ~Part() = default;
  virtual std::span<const double> keys_values() const = 0;  // of this rank's positions, ready to be sent
  // This rank's queries attend to the keys and values of rank `owner`'s positions, up to the query's own position.
  // Takes time on the virtual clock, for each pair of a query and a key.
  virtual Partial attend(std::span<const double> keys_values, int owner) const = 0;
};

}  // namespace ranklab::lesson

extern "C" {
// Fills in which of the positions 0 .. ranks x positions.size() - 1 this rank has, ascending. positions.size() is even.
void choose_positions(int rank, int ranks, std::span<size_t> positions);
// Warm-up. log(exp(a) + exp(b)), for any a and b: exact to 1e-12 also where exp(a) overflows, and kNothing if both are
// kNothing.
double log_of_both(double a, double b);
// total and block: the same queries, different keys. Afterwards total is their result over all these keys.
void merge_partial(ranklab::lesson::Partial& total, const ranklab::lesson::Partial& block);
// At first total has out 0 and log_sum_exp kNothing for every query; afterwards it is the result over all ranks' keys.
void ring_attention(ranklab::lesson::Comm& cp, const ranklab::lesson::Part& mine, ranklab::lesson::Partial& total);
}
