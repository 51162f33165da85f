#include "tests/pipeline/message_program.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/text.h"

namespace ranklab {
namespace {

std::string describe(const PipelineMessage& m) {
  return strprintf("the %s of %d%s%d", m.forward ? "output" : "gradient", m.stage, m.forward ? "F" : "B", m.microbatch);
}

using Direction = std::tuple<int, int, int>;  // channel, from, to

// Checks everything that can be checked without running the program: each message occurs once on both sides, in the
// same order, is produced before it is sent, and received before it is used.
class StaticCheck {
 public:
  StaticCheck(const Schedule& schedule, const MessageProgram& program) : schedule_(schedule), program_(program) {}

  std::string run() {
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      if (std::string problem = walk(rank); !problem.empty()) return problem;
    }
    std::set<Direction> directions;
    for (const auto& sides : {sends_, receives_})
      for (const auto& [direction, messages] : sides) directions.insert(direction);
    for (const Direction& direction : directions) {
      if (std::string problem = compare(direction); !problem.empty()) return problem;
    }
    return "";
  }

 private:
  std::string walk(int rank) {
    const std::vector<Action>& actions = schedule_.ranks[static_cast<size_t>(rank)];
    std::set<PipelineMessage> made, come;
    size_t next = 0;
    for (const ProgramStep& step : program_.ranks[static_cast<size_t>(rank)]) {
      if (step.channel < 0) {
        if (next == actions.size()) return strprintf("rank %d runs more actions than it has", rank);
        for (const PipelineMessage& message : needed_messages(schedule_, actions[next]))
          if (!come.contains(message))
            return strprintf("rank %d runs ", rank) + to_text(actions[next]) + " before it receives " +
                   describe(message);
        for (const PipelineMessage& message : made_messages(schedule_, actions[next])) made.insert(message);
        ++next;
        continue;
      }
      for (const Transfer& transfer : step.transfers) {
        const auto [from, to, forward] = lane_of(schedule_, transfer.message);
        if ((transfer.send ? from : to) != rank)
          return strprintf("rank %d has no part in ", rank) + describe(transfer.message);
        if (transfer.send && made.erase(transfer.message) == 0)
          return strprintf("rank %d sends ", rank) + describe(transfer.message) + ", which it does not have";
        if (!transfer.send && !come.insert(transfer.message).second)
          return strprintf("rank %d receives ", rank) + describe(transfer.message) + " twice";
        (transfer.send ? sends_ : receives_)[{step.channel, from, to}].push_back(transfer.message);
      }
    }
    if (next != actions.size()) return strprintf("rank %d does not run all its actions", rank);
    if (!made.empty()) return strprintf("rank %d never sends ", rank) + describe(*made.begin());
    return "";
  }

  std::string compare(const Direction& direction) {
    const auto [channel, from, to] = direction;
    const std::vector<PipelineMessage>& sent = sends_[direction];
    const std::vector<PipelineMessage>& received = receives_[direction];
    const std::string place = strprintf("channel %d, from rank %d to rank %d: ", channel, from, to);
    for (size_t i = 0; i < std::min(sent.size(), received.size()); ++i) {
      if (sent[i] == received[i]) continue;
      return place + strprintf("message %zu is ", i) + describe(sent[i]) + " for the sender and " +
             describe(received[i]) + " for the receiver";
    }
    if (sent.size() == received.size()) return "";
    return place + strprintf("%zu messages are sent and %zu received", sent.size(), received.size());
  }

  const Schedule& schedule_;
  const MessageProgram& program_;
  std::map<Direction, std::vector<PipelineMessage>> sends_, receives_;
};

// Simulates the program as far as it goes.
class Machine {
 public:
  Machine(const Schedule& schedule, const MessageProgram& program)
      : schedule_(schedule), program_(program), hosts_(program.ranks.size()) {}

  std::string run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
        while (advance(rank)) moved = true;
        if (!problem_.empty()) return problem_;
      }
    }
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      if (!finished(rank)) return stuck();
    }
    return "";
  }

 private:
  struct Launch {
    std::vector<Transfer> transfers;
  };
  struct Host {
    size_t step = 0;
    size_t action = 0;
    std::map<int, std::vector<Launch>> queues;  // by channel; the first is running
    std::set<PipelineMessage> received;
  };

  Host& host(int rank) { return hosts_[static_cast<size_t>(rank)]; }
  const ProgramStep* current(int rank) {
    const auto& steps = program_.ranks[static_cast<size_t>(rank)];
    return host(rank).step < steps.size() ? &steps[host(rank).step] : nullptr;
  }
  bool finished(int rank) {
    return current(rank) == nullptr && std::all_of(host(rank).queues.begin(), host(rank).queues.end(),
                                                   [](const auto& queue) { return queue.second.empty(); });
  }

  // Performs one event of this rank that can happen: a kernel ends, or its host takes a step.
  bool advance(int rank) {
    for (auto& [channel, queue] : host(rank).queues) {
      if (!queue.empty() && ends(channel, queue.front())) {
        for (const Transfer& transfer : queue.front().transfers) {
          if (!transfer.send) host(rank).received.insert(transfer.message);
        }
        queue.erase(queue.begin());
        return true;
      }
    }
    const ProgramStep* step = current(rank);
    if (step == nullptr) return false;
    return step->channel < 0 ? act(rank) : launch(rank, *step);
  }

  bool act(int rank) {
    Host& me = host(rank);
    const Action& action = schedule_.ranks[static_cast<size_t>(rank)][me.action];
    for (const PipelineMessage& message : needed_messages(schedule_, action)) {
      if (!me.received.contains(message)) return false;
    }
    ++me.action;
    ++me.step;
    return true;
  }

  bool launch(int rank, const ProgramStep& step) {
    if (!program_.connected && !connect(rank, step)) return false;
    host(rank).queues[step.channel].push_back({step.transfers});
    for (const Transfer& transfer : step.transfers) handed_.insert({transfer.send, transfer.message});
    ++host(rank).step;
    return true;
  }

  // Whether a kernel ends: it does when the counterparts of all its transfers are running or have run.
  bool ends(int channel, const Launch& kernel) {
    return std::all_of(kernel.transfers.begin(), kernel.transfers.end(), [&](const Transfer& transfer) {
      if (!handed_.contains({!transfer.send, transfer.message})) return false;
      const auto [from, to, forward] = lane_of(schedule_, transfer.message);
      const std::vector<Launch>& queue = host(transfer.send ? to : from).queues[channel];
      // The counterpart either waits behind others in its queue, is running at the head of it, or has ended.
      for (size_t i = 1; i < queue.size(); ++i) {
        for (const Transfer& behind : queue[i].transfers)
          if (behind.send != transfer.send && behind.message == transfer.message) return false;
      }
      return true;
    });
  }

  std::set<Direction> new_directions(const ProgramStep& step, int with) {
    std::set<Direction> out;
    for (const Transfer& transfer : step.transfers) {
      const auto [from, to, forward] = lane_of(schedule_, transfer.message);
      if (from != with && to != with) continue;
      const Direction direction = {step.channel, from, to};
      if (!connected_.contains(direction)) out.insert(direction);
    }
    return out;
  }

  // Returns true when every direction of this launch is connected.
  bool connect(int rank, const ProgramStep& step) {
    std::set<int> peers;
    for (const Transfer& transfer : step.transfers) {
      const auto [from, to, forward] = lane_of(schedule_, transfer.message);
      peers.insert(from == rank ? to : from);
    }
    bool all = true;
    for (const int peer : peers) {
      const std::set<Direction> mine = new_directions(step, peer);
      if (mine.empty()) continue;
      const ProgramStep* theirs = current(peer);
      const std::set<Direction> other =
          theirs != nullptr && theirs->channel == step.channel ? new_directions(*theirs, rank) : std::set<Direction>{};
      if (other.empty()) {
        all = false;
      } else if (other != mine) {
        problem_ = strprintf("channel %d: ranks %d and %d connect at the same time, but not the same directions",
                             step.channel, rank, peer);
        return false;
      } else {
        connected_.insert(mine.begin(), mine.end());
      }
    }
    return all;
  }

  std::string stuck() {
    std::vector<std::string> lines;
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      const ProgramStep* step = current(rank);
      if (step == nullptr) continue;
      const bool acts = step->channel < 0;
      lines.push_back(
          strprintf("rank %d ", rank) +
          (acts ? "waits for what " + to_text(schedule_.ranks[static_cast<size_t>(rank)][host(rank).action]) + " needs"
                : strprintf("waits inside a launch on channel %d", step->channel)));
    }
    return "no rank can continue: " + join(lines, "; ");
  }

  const Schedule& schedule_;
  const MessageProgram& program_;
  std::vector<Host> hosts_;
  std::set<std::pair<bool, PipelineMessage>> handed_;  // the sides of messages that were enqueued on a stream
  std::set<Direction> connected_;
  std::string problem_;
};

}  // namespace

MessageProgram lane_program(const Schedule& schedule, int prefetch) {
  MessageProgram program;
  program.connected = true;
  std::map<PipelineLane, int> channels;
  for (const LaneOrder& lane : message_lanes(schedule)) channels.emplace(lane.lane, program.num_channels++);
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    const auto receives = receives_before(schedule, rank, prefetch, ReceiveOrder::kAsSent);
    std::vector<ProgramStep>& steps = program.ranks.emplace_back();
    const auto post = [&](bool send, const PipelineMessage& message) {
      steps.push_back({channels.at(lane_of(schedule, message)), {{send, message}}});
    };
    const std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    for (size_t i = 0; i < actions.size(); ++i) {
      for (const PipelineMessage& message : receives[i]) post(false, message);
      steps.push_back({});
      for (const PipelineMessage& message : made_messages(schedule, actions[i])) post(true, message);
    }
  }
  return program;
}

std::string program_problem(const Schedule& schedule, const MessageProgram& program) {
  std::string problem = StaticCheck(schedule, program).run();
  return problem.empty() ? Machine(schedule, program).run() : problem;
}

}  // namespace ranklab
