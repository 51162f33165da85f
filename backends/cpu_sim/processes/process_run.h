// One run of this process's rank: posts its calls to the coordinator, and moves the bytes of matched calls with Gloo.
// Thread rule: the rank's thread posts; answers come on the control thread.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "backends/cpu_sim/processes/control.h"
#include "backends/cpu_sim/processes/process_mover.h"
#include "backends/cpu_sim/run.h"
#include "backends/cpu_sim/transport/peer_links.h"

namespace ranklab::cpu_sim {

// How this process reaches the other processes' data connections; lives as long as the world.
struct DataPlane {
  std::shared_ptr<PeerLinks> links;
  std::shared_ptr<GlooGroup> mesh;  // all ranks
  std::chrono::milliseconds timeout;
};

class ProcessRun final : public Run {
 public:
  // `number`: index of the run in its world, the same on every rank.
  ProcessRun(Control& control, const DataPlane& plane, int rank, int number);
  ~ProcessRun() override;

  Channel& channel(const ChannelInfo& info) override;
  ExchangePtr post(Channel& channel, int seat, Call call, Mover& mover) override;
  void block(int rank, const ExchangePtr& exchange) override;
  void finished_call(int rank, const Exchange& exchange, int seat, int64_t now_ns) override;
  Error abort_error(int rank) override;
  void body_returned(int rank) override;
  void body_failed(int rank, const Error& error) override;
  std::shared_ptr<Mover> mover(const std::string& label, const Group& group) override;

  // Waits until every rank's body returned, or the world failed.
  void wait_end();

 private:
  struct Open {
    ExchangePtr exchange;
    Mover* mover;
  };
  void on_frame(const Frame& frame);
  void on_failure();
  int64_t number_of(const Exchange& exchange);

  Control& control_;
  const DataPlane& plane_;
  const int rank_;
  const int number_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Channel> channels_;
  std::map<const ChannelInfo*, int64_t> numbers_;
  std::map<std::pair<int64_t, int64_t>, Open> open_;  // posted but not matched
  std::map<std::string, std::shared_ptr<ProcessMover>> movers_;
  bool ended_ = false;
  bool failed_ = false;
};

}  // namespace ranklab::cpu_sim
