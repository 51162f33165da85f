// Lesson 18, solution.
#include "exercise.h"

#include <vector>

using namespace ranklab::lesson;

extern "C" void outer_update(Comm& comm, std::span<double> outer, std::span<double> own, std::span<double> momentum,
                             const OuterRule& rule) {
  std::vector<double> gradient(own.size());
  for (size_t i = 0; i < own.size(); ++i) gradient[i] = outer[i] - own[i];
  comm.all_reduce(gradient);
  for (size_t i = 0; i < own.size(); ++i) {
    gradient[i] /= comm.size();
    momentum[i] = rule.momentum * momentum[i] + gradient[i];
    outer[i] -= rule.lr * (rule.nesterov ? gradient[i] + rule.momentum * momentum[i] : momentum[i]);
    own[i] = outer[i];
  }
}
