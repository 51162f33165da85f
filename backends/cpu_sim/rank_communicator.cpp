#include "backends/cpu_sim/rank_communicator.h"

#include <map>
#include <tuple>
#include <utility>

#include "backends/cpu_sim/pause.h"
#include "core/base/error.h"
#include "core/comm/call_check.h"
#include "core/trace/tracer.h"

namespace ranklab::cpu_sim {
namespace {

class RankWork final : public Work {
 public:
  RankWork(std::shared_ptr<Run> run, ExchangePtr exchange, int seat, std::shared_ptr<Mover> mover,
           std::shared_ptr<CommThread::Job> job)
      : run_(std::move(run)),
        exchange_(std::move(exchange)),
        seat_(seat),
        mover_(std::move(mover)),
        job_(std::move(job)) {}

  ~RankWork() override {
    if (!finished_) mover_->abandoned(*exchange_, seat_);
  }

  at::Tensor wait() override {
    if (!finished_) finish();
    return output_;
  }

  bool is_completed() const override {
    if (finished_) return true;
    const Phase phase = exchange_->current();
    if (phase == Phase::kOpen) return false;
    if (phase == Phase::kAborted) return true;  // wait() throws at once
    if (job_) return job_->done.load(std::memory_order_acquire) != 0;
    return mover_->poll(*exchange_, seat_);
  }

  CallTimes times() const override { return times_; }

 private:
  Seat& seat() const { return exchange_->seats[static_cast<size_t>(seat_)]; }
  int rank() const { return exchange_->channel->ranks[static_cast<size_t>(seat_)]; }

  void wait_matched() {
    const auto open = static_cast<uint32_t>(Phase::kOpen);
    if (!yield_while(exchange_->phase, open)) {
      run_->block(rank(), exchange_);
      exchange_->phase.wait(open, std::memory_order_acquire);
    }
    if (exchange_->current() == Phase::kAborted) throw run_->abort_error(rank());
  }

  void finish() {
    wait_matched();
    if (job_) {
      pause_while(job_->done, 0);
      if (job_->error) std::rethrow_exception(job_->error);
    } else {
      mover_->complete(*exchange_, seat_);
    }
    const int64_t now_ns = wall_now_ns();
    run_->finished_call(rank(), *exchange_, seat_, now_ns);
    times_ = {.matched_virtual_ns = exchange_->matched_virtual_ns,
              .matched_bytes = exchange_->matched_bytes,
              .posted_wall_ns = seat().posted_wall_ns,
              .matched_wall_ns = exchange_->matched_wall_ns,
              .done_wall_ns = exchange_->done_wall_ns != 0 ? exchange_->done_wall_ns : now_ns,
              .wire_bytes = mover_->wire_bytes(*exchange_, seat_),
              .sequence = exchange_->sequence};
    // The exchange lives until its slowest member is done; this rank's tensors may be released earlier.
    output_ = std::move(seat().call.output);
    seat().call.input.reset();
    finished_ = true;
  }

  std::shared_ptr<Run> run_;
  ExchangePtr exchange_;
  int seat_;
  std::shared_ptr<Mover> mover_;
  std::shared_ptr<CommThread::Job> job_;
  at::Tensor output_;
  CallTimes times_;
  bool finished_ = false;
};

class RankCommunicator final : public Communicator, public OffersPeerMemory {
 public:
  RankCommunicator(std::shared_ptr<Run> run, Group group, std::string label, std::shared_ptr<Mover> mover)
      : Communicator(std::move(group)),
        run_(std::move(run)),
        label_(std::move(label)),
        mover_(std::move(mover)),
        collectives_(&run_->channel({label_, this->group().global_ranks, false})) {}

  ~RankCommunicator() override {
    if (comm_thread_) run_->retire(std::move(comm_thread_));
  }

  PeerMemoryPtr peer_memory() override {
    const std::string label = label_ + " memory " + std::to_string(peer_memories_++);
    std::shared_ptr<PeerBuffers> buffers = run_->peer_buffers(label, size());
    return buffers ? make_peer_memory(run_, group(), label, std::move(buffers)) : nullptr;
  }

  WorkPtr post(Call call) override {
    if (const at::Tensor& tensor = payload(call); tensor.defined()) {
      RANKLAB_CHECK(
          tensor.device().type() == run_->device().type(), ErrorKind::kInvalidArgument,
          .where = "rank " + std::to_string(group().global_rank()) + ", " + group().label() + ", " + describe(call),
          .what = "the tensor is on another device than the ranks", .got = tensor.device().str(),
          .want = run_->device().str(), .fix = "create tensors on Endpoint::device()");
    }
    if (call.verb == Verb::kSend || call.verb == Verb::kRecv) return post_message(std::move(call));
    // Once there is a communication thread, every call goes through it, so that calls stay in order.
    const bool threaded = comm_thread_ != nullptr || mover_->needs_thread(call);
    ExchangePtr exchange = run_->post(*collectives_, rank(), std::move(call), *mover_);
    std::shared_ptr<CommThread::Job> job;
    if (threaded) {
      if (!comm_thread_) comm_thread_ = std::make_unique<CommThread>(mover_);
      job = comm_thread_->submit(exchange, rank());
    }
    return std::make_shared<RankWork>(run_, std::move(exchange), rank(), mover_, std::move(job));
  }

 private:
  WorkPtr post_message(Call call) {
    const bool sends = call.verb == Verb::kSend;
    const int from = sends ? rank() : call.peer;
    const int to = sends ? call.peer : rank();
    Channel*& channel = messages_[{from, to, call.tag}];
    if (channel == nullptr) {
      const std::string label = label_ + " message " + std::to_string(from) + " -> " + std::to_string(to) + " tag " +
                                std::to_string(call.tag);
      const auto& ranks = group().global_ranks;
      channel = &run_->channel({label, {ranks[static_cast<size_t>(from)], ranks[static_cast<size_t>(to)]}, true});
    }
    const int seat = sends ? 0 : 1;
    return std::make_shared<RankWork>(run_, run_->post(*channel, seat, std::move(call), *mover_), seat, mover_,
                                      nullptr);
  }

  std::shared_ptr<Run> run_;
  std::string label_;
  std::shared_ptr<Mover> mover_;
  Channel* collectives_;
  int peer_memories_ = 0;
  std::map<std::tuple<int, int, int>, Channel*> messages_;
  std::unique_ptr<CommThread> comm_thread_;
};

}  // namespace

CommunicatorPtr make_rank_communicator(std::shared_ptr<Run> run, Group group, std::string label,
                                       std::shared_ptr<Mover> mover) {
  return std::make_shared<RankCommunicator>(std::move(run), std::move(group), std::move(label), std::move(mover));
}

}  // namespace ranklab::cpu_sim
