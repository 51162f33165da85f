// Processes that plan layouts in parallel. The ranks of a plan wait for each other most of the time, so a plan keeps
// hardly more than one core busy. What a plan sets (observers, memory accounting, the default engine of autograd) is
// per process or thread, so each concurrent plan needs a process of its own. The workers are forked from this process
// before it plans anything itself, and end with it. Cost: some milliseconds each. Thread rule: main thread, while there
// is no other.
#pragma once
#include <sys/types.h>

#include <functional>
#include <vector>

#include "core/plan/search/layout_search.h"

namespace ranklab {

// The number of cores, or fewer if so many workers would take too much of the free memory.
int plans_at_once();

class PlanWorkers {
 public:
  // `plan` must not throw. With one worker it runs in this process.
  PlanWorkers(int workers, std::function<PlannedLayout(const LayoutChoice&)> plan);
  ~PlanWorkers();
  PlanWorkers(const PlanWorkers&) = delete;
  PlanWorkers& operator=(const PlanWorkers&) = delete;

  int size() const { return workers_.empty() ? 1 : static_cast<int>(workers_.size()); }
  // RETURNS: the plans in the order of the choices. `planned` is called after each. Throws kInternal if a worker was
  // killed.
  std::vector<PlannedLayout> plan(const std::vector<LayoutChoice>& choices, const std::function<void()>& planned);

 private:
  struct Worker {
    pid_t pid = -1;
    int socket = -1;
    int choice = -1;  // index of the choice that it plans; -1: none
  };
  void start_worker();
  [[noreturn]] void serve(int socket) const;
  PlannedLayout answer_of(Worker& worker, const LayoutChoice& choice) const;

  std::function<PlannedLayout(const LayoutChoice&)> plan_;
  std::vector<Worker> workers_;
};

}  // namespace ranklab
