#include "lessons/rank_run.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "backends/cpu_sim/thread_world.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/sim/aten.h"

namespace ranklab::lesson {
namespace {

at::Tensor view_of(std::span<double> data) {
  return at::from_blob(data.data(), {static_cast<int64_t>(data.size())}, at::kDouble);
}
// The data are only read, although from_blob takes a non-const pointer.
at::Tensor view_of(std::span<const double> data) {
  return view_of(std::span<double>(const_cast<double*>(data.data()), data.size()));
}

bool overlap(std::span<const double> a, std::span<const double> b) {
  const std::less<> before;  // also valid for pointers to unrelated objects
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

// A call that was started. Messages are sent from and received in copies, so that a rank that touches its spans too
// early gets the same wrong result, or error, in every run.
struct Started {
  std::vector<WorkPtr> works = {};
  std::span<const double> out = {};
  std::span<double> in = {};
  at::Tensor leaving = {}, arriving = {};
  bool done = false;
};

class RankComm final : public Comm {
 public:
  explicit RankComm(Communicator& comm) : comm_(comm) {}
  // Waits for all calls that were started but not waited for, so that no peer reads freed memory.
  ~RankComm() override {
    try {
      for (const Started& call : started_)
        for (const WorkPtr& work : call.works) work->wait();
    } catch (const std::exception&) {
      return;  // the world is poisoned, and its first error is the one that is reported
    }
  }
  RankComm(const RankComm&) = delete;
  RankComm& operator=(const RankComm&) = delete;
  void require_all_waited() const {
    const auto open = std::ranges::find(started_, false, &Started::done);
    RANKLAB_CHECK(open == started_.end(), ErrorKind::kInvalidArgument, .where = rank_name(comm_.group().global_rank()),
                  .what = "a call was started and never waited for",
                  .got = "ticket " + std::to_string(open - started_.begin()) + " of " +
                         std::to_string(started_.size()) + " started",
                  .want = "wait(ticket) for each: before it, what arrives is not in the span",
                  .fix = "keep what start_...() returned until you need the result, then wait for it");
  }
  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }

  void wait(int ticket) override {
    RANKLAB_CHECK(ticket >= 0 && ticket < static_cast<int>(started_.size()), ErrorKind::kInvalidArgument,
                  .where = "wait", .what = "there is no such ticket", .got = std::to_string(ticket),
                  .want = started_.empty() ? "a ticket of start_...(); nothing was started"
                                           : "0 to " + std::to_string(started_.size() - 1),
                  .fix = "wait for what start_...() returned");
    Started& call = started_[static_cast<size_t>(ticket)];
    if (std::exchange(call.done, true)) return;
    for (const WorkPtr& work : call.works) work->wait();
    deliver(call);
    call = {.done = true};
  }

 private:
  void do_send(std::span<const double> data, int to, Site site) override { comm_.send(view_of(data), to, 0, site); }
  void do_recv(std::span<double> data, int from, Site site) override { comm_.recv(view_of(data), from, 0, site); }
  void do_send_recv(std::span<const double> out, int to, std::span<double> in, int from, Site site) override {
    check_apart(out, in);
    const WorkPtr sending = comm_.send_async(view_of(out), to, 0, site);
    const WorkPtr receiving = comm_.recv_async(view_of(in), from, 0, site);
    sending->wait();
    receiving->wait();
  }
  void do_all_gather(std::span<const double> mine, std::span<double> all, Site site) override {
    const NoCostScope no_cost;
    check_sizes("all_gather", mine.size(), all.size());
    view_of(all).copy_(comm_.all_gather(view_of(mine), {}, site));
  }
  void do_reduce_scatter(std::span<const double> all, std::span<double> mine, Site site) override {
    const NoCostScope no_cost;
    check_sizes("reduce_scatter", mine.size(), all.size());
    view_of(mine).copy_(comm_.reduce_scatter(view_of(all), ReduceOp::kSum, {}, site));
  }
  void do_all_to_all(std::span<const double> out, std::span<const size_t> send, std::span<double> in,
                     std::span<const size_t> recv, Site site) override {
    const NoCostScope no_cost;
    check_counts("send", send, out.size());
    check_counts("recv", recv, in.size());
    view_of(in).copy_(comm_.all_to_all(view_of(out), {send.begin(), send.end()}, {recv.begin(), recv.end()}, site));
  }
  int do_start_all_reduce(std::span<double> data, Site site) override {
    const NoCostScope no_cost;
    Started call{.in = data, .arriving = view_of(data).clone()};
    call.works.push_back(comm_.all_reduce_async(call.arriving, ReduceOp::kSum, site));
    return add(std::move(call));
  }
  int do_start_send_recv(std::span<const double> out, int to, std::span<double> in, int from, Site site) override {
    check_apart(out, in);
    const NoCostScope no_cost;
    Started call{.out = out, .in = in, .leaving = view_of(out).clone(), .arriving = at::empty_like(view_of(in))};
    call.works.push_back(comm_.send_async(call.leaving, to, 0, site));
    call.works.push_back(comm_.recv_async(call.arriving, from, 0, site));
    return add(std::move(call));
  }

  int add(Started call) {
    started_.push_back(std::move(call));
    return static_cast<int>(started_.size()) - 1;
  }

  static void deliver(const Started& call) {
    const NoCostScope no_cost;
    RANKLAB_CHECK(!call.leaving.defined() ||
                      std::memcmp(call.out.data(), call.leaving.const_data_ptr(), call.out.size_bytes()) == 0,
                  ErrorKind::kInvalidArgument, .where = "wait", .what = "a message was changed while it was sent",
                  .got = "other numbers in `out` than start_send_recv() was given", .want = "the same until wait()",
                  .fix = "use one buffer to send from and another one to receive in, and exchange them after wait()");
    view_of(call.in).copy_(call.arriving);
  }

  static void check_apart(std::span<const double> out, std::span<const double> in) {
    RANKLAB_CHECK(!overlap(out, in), ErrorKind::kInvalidArgument, .where = "send_recv",
                  .what = "a rank receives into what it sends", .got = "spans that overlap", .want = "two buffers",
                  .fix = "receive into a buffer of your own");
  }

  void check_sizes(const char* verb, size_t mine, size_t all) const {
    RANKLAB_CHECK(mine * static_cast<size_t>(size()) == all, ErrorKind::kInvalidArgument, .where = verb,
                  .what = "the spans do not fit the group",
                  .got = std::to_string(mine) + " and " + std::to_string(all) + " elements on " +
                         std::to_string(size()) + " ranks",
                  .want = "`all` to be " + std::to_string(size()) + " times `mine`",
                  .fix = "look at which span is the whole and which is this rank's part");
  }

  void check_counts(const char* which, std::span<const size_t> counts, size_t numbers) const {
    const size_t sum = std::accumulate(counts.begin(), counts.end(), size_t{0});
    RANKLAB_CHECK(counts.size() == static_cast<size_t>(size()) && sum == numbers, ErrorKind::kInvalidArgument,
                  .where = "all_to_all", .what = std::string("the counts of `") + which + "` do not fit its numbers",
                  .got = std::to_string(counts.size()) + " counts, which add up to " + std::to_string(sum),
                  .want = std::to_string(size()) + " counts that add up to " + std::to_string(numbers),
                  .fix = "count numbers, not rows, one count for each rank");
  }

  Communicator& comm_;
  std::vector<Started> started_;
};

}  // namespace

int64_t RankRecord::calls(Verb verb) const {
  int64_t count = 0;
  for (const Event& event : trace.events) count += event.kind == EventKind::kCollective && event.verb == verb ? 1 : 0;
  return count;
}

int64_t RankRecord::sent_bytes() const {
  int64_t bytes = 0;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kCollective && event.verb != Verb::kRecv) bytes += event.algorithm_bytes;
  }
  return bytes;
}

int64_t RankRecord::link_ns() const {
  int64_t total = 0;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kCollective) total += event.virtual_end_ns - event.virtual_begin_ns;
  }
  return total;
}

std::vector<RankTrace> traces_of(const std::vector<RankRecord>& records) {
  std::vector<RankTrace> traces;
  for (const RankRecord& record : records) traces.push_back(record.trace);
  return traces;
}

std::vector<RankRecord> run_ranks(const RankSetup& setup, const std::function<void(RankContext&)>& body) {
  const DeviceMesh mesh(setup.dims);
  const HardwareProfile profile = load_hardware_profile(setup.hardware);
  ThreadWorldOptions options{.size = setup.dims.world, .on_stuck = {}};
  if (setup.exercise != nullptr) {
    options.hang_timeout = setup.exercise->hang_timeout;
    options.grace = setup.exercise->hang_timeout / 4;
    options.on_stuck = setup.exercise->on_stuck;
  }
  std::vector<RankRecord> records(static_cast<size_t>(setup.dims.world));
  make_thread_world(options)->run([&](Endpoint& endpoint) {
    RankContext context(endpoint, mesh, {.profile = &profile, .gpus_per_node = setup.gpus_per_node});
    body(context);
    RankRecord& record = records[static_cast<size_t>(context.global_rank())];
    record.virtual_ns = context.clock().now_ns();
    record.exposed_ns = context.clock().exposed_total_ns();
    record.trace = context.tracer().take();
  });
  return records;
}

void require_all_waited(const Comm& comm) { dynamic_cast<const RankComm&>(comm).require_all_waited(); }

std::unique_ptr<Comm> make_comm(Communicator& comm) { return std::make_unique<RankComm>(comm); }

}  // namespace ranklab::lesson
