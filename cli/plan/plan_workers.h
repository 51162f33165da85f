// Processes that plan layouts side by side. The ranks of a plan wait for each other most of the time, so a plan keeps
// hardly more than one core busy; and what a plan sets (observers, books of memory, the default engine of autograd) is
// of its process or thread, so that plans beside each other are in processes of their own. They are forked from this
// one before it plans itself, and end with it. Cost: some milliseconds each. Thread rule: main thread, while there is
// no other.
#pragma once
#include <sys/types.h>

#include <functional>
#include <vector>

#include "core/plan/search/layout_search.h"

namespace ranklab {

// As many as cores, unless they would take too much of the memory that is free.
int plans_at_once();

class PlanWorkers {
 public:
  // `plan` must not throw. With one worker it runs here.
  PlanWorkers(int workers, std::function<PlannedLayout(const LayoutChoice&)> plan);
  ~PlanWorkers();
  PlanWorkers(const PlanWorkers&) = delete;
  PlanWorkers& operator=(const PlanWorkers&) = delete;

  int size() const { return workers_.empty() ? 1 : static_cast<int>(workers_.size()); }
  // In the order of the choices. `planned` is called after each. Throws kInternal where a worker was killed.
  std::vector<PlannedLayout> plan(const std::vector<LayoutChoice>& choices, const std::function<void()>& planned);

 private:
  struct Worker {
    pid_t pid = -1;
    int socket = -1;
    int choice = -1;  // which it plans; -1: none
  };
  void start_worker();
  [[noreturn]] void serve(int socket) const;
  PlannedLayout answer_of(Worker& worker, const LayoutChoice& choice) const;

  std::function<PlannedLayout(const LayoutChoice&)> plan_;
  std::vector<Worker> workers_;
};

}  // namespace ranklab
