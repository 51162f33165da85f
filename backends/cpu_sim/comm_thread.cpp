#include "backends/cpu_sim/comm_thread.h"

#include <utility>

#include "backends/cpu_sim/pause.h"

namespace ranklab::cpu_sim {

CommThread::CommThread(std::shared_ptr<Mover> mover) : mover_(std::move(mover)), thread_([this] { loop(); }) {}

CommThread::~CommThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::shared_ptr<CommThread::Job> CommThread::submit(const ExchangePtr& exchange, int seat) {
  auto job = std::make_shared<Job>(exchange, seat);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(job);
  }
  wake_.notify_one();
  return job;
}

void CommThread::loop() {
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    job->exchange->phase.wait(static_cast<uint32_t>(Phase::kOpen), std::memory_order_acquire);
    if (job->exchange->current() != Phase::kAborted) {
      try {
        mover_->complete(*job->exchange, job->seat);
      } catch (...) {
        job->error = std::current_exception();
      }
    }
    notify_waiters(job->done, 1);
  }
}

}  // namespace ranklab::cpu_sim
