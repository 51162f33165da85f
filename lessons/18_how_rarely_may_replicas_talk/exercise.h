// Lesson 18: the outer update of DiLoCo, after which replicas that trained on their own are equal again.
#pragma once
#include "../lesson_api.h"

namespace ranklab::lesson {

// SGD of the outer parameters, as torch.optim.SGD computes it. Learning rate 1 without momentum is local SGD: the mean
// of the replicas' parameters.
struct OuterRule {
  double lr = 0.7;
  double momentum = 0.9;
  bool nesterov = true;
};

}  // namespace ranklab::lesson

// Called on each replica when it has trained on its own for a while.
// outer: the parameters from which all replicas started, equal on all; own: this replica's parameters now;
// momentum: the outer optimizer's, zeros before the first update. When this returns, outer and momentum are updated,
// and own equals outer.
extern "C" void outer_update(ranklab::lesson::Comm& comm, std::span<double> outer, std::span<double> own,
                             std::span<double> momentum, const ranklab::lesson::OuterRule& rule);
