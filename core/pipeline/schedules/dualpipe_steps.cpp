#include "core/pipeline/schedules/dualpipe_steps.h"

#include <deque>

namespace ranklab {
namespace {

class Steps {
 public:
  explicit Steps(const DualPipeRank& rank) : rank_(rank) {}

  void f(int stream) { actions_.push_back(forward(rank_.stage[stream], next(forwarded_, stream))); }
  void bw(int stream) { actions_.push_back(backward(rank_.stage[stream], next(backwarded_, stream))); }
  void b(int stream) {
    const int microbatch = next(backwarded_, stream);
    actions_.push_back(input_grad(rank_.stage[stream], microbatch));
    weights_.push_back(weight_grad(rank_.stage[stream], microbatch));
  }
  void w() {
    if (weights_.empty()) return;
    actions_.push_back(weights_.front());
    weights_.pop_front();
  }
  void f_and_bw(int forward_stream, int backward_stream) {
    const int forward_microbatch = next(forwarded_, forward_stream);
    actions_.push_back(pair(rank_.stage[forward_stream], forward_microbatch, rank_.stage[backward_stream],
                            next(backwarded_, backward_stream)));
  }
  std::vector<Action> take() {
    while (!weights_.empty()) w();
    return std::move(actions_);
  }

 private:
  int next(int (&counters)[2], int stream) const { return rank_.first_microbatch[stream] + counters[stream]++; }
  const DualPipeRank& rank_;
  int forwarded_[2] = {0, 0};
  int backwarded_[2] = {0, 0};
  std::deque<Action> weights_;
  std::vector<Action> actions_;
};

}  // namespace

std::vector<Action> dualpipe_actions(const DualPipeRank& rank) {
  const int inner = rank.half - rank.from_outside - 1;  // ranks between this one and the middle
  const int outer = rank.from_outside + 1;
  Steps steps(rank);
  for (int i = 0; i < 2 * inner; ++i) steps.f(0);
  for (int i = 0; i < outer; ++i) {
    steps.f(0);
    steps.f(1);
  }
  for (int i = 0; i < inner; ++i) {
    steps.b(1);
    steps.w();
    steps.f(1);
  }
  for (int i = 0; i < rank.count - 2 * rank.half + outer; ++i) {
    if (i == 0 && inner == 0) {  // in the middle the first halves of two pairs would depend on each other
      steps.f(0);
      steps.bw(1);
    } else {
      steps.f_and_bw(0, 1);
    }
    steps.f_and_bw(1, 0);
  }
  for (int i = 0; i < inner; ++i) {
    steps.bw(1);
    steps.f_and_bw(1, 0);
  }
  for (int i = 0; i < outer; ++i) {  // weight gradients are split off in the second half, to fill the drain
    const bool split = i >= outer / 2;
    const bool split_first = outer % 2 == 1 ? i > outer / 2 : split;
    split_first ? steps.b(1) : steps.bw(1);
    split ? steps.b(0) : steps.bw(0);
  }
  for (int i = 0; i < inner; ++i) {
    steps.w();
    steps.b(0);
  }
  return steps.take();
}

}  // namespace ranklab
