#include "backends/meta/meta_communicator.h"

#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "backends/meta/meta_peer_memory.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab::meta {
namespace {

using Members = std::map<int, at::Tensor>;

class MetaWork final : public Work {
 public:
  struct Waited {
    std::shared_ptr<Meetings> meetings;  // null: nobody else makes the call
    MeetingKey key;
    int expected = 1;
    std::function<void(const Members&)> finish = {};  // for a call with values
  };
  MetaWork(at::Tensor input, at::Tensor output, CallTimes times, Waited waited)
      : input_(std::move(input)), output_(std::move(output)), times_(times), waited_(std::move(waited)) {}

  at::Tensor wait() override {
    if (const std::shared_ptr<Meetings> meetings = std::exchange(waited_.meetings, nullptr)) {
      const Met met = meetings->leave(waited_.key, waited_.expected);
      times_.matched_virtual_ns = met.latest_ns;
      times_.matched_bytes = met.most_bytes;
      if (waited_.finish) waited_.finish(met.numbers);
    }
    input_.reset();
    return output_;
  }
  bool is_completed() const override {
    return !waited_.meetings || waited_.meetings->met(waited_.key, waited_.expected);
  }
  CallTimes times() const override { return times_; }

 private:
  at::Tensor input_;  // kept until the caller has waited, as on ranks whose tensors have values
  at::Tensor output_;
  CallTimes times_;
  Waited waited_;
};

class MetaCommunicator final : public Communicator, public OffersPeerMemory {
 public:
  MetaCommunicator(Group group, const std::string& label, std::shared_ptr<Meetings> meetings,
                   std::shared_ptr<const std::vector<int>> stand_in)
      : Communicator(std::move(group)),
        number_(meetings->communicator(label)),
        meetings_(std::move(meetings)),
        stand_in_(std::move(stand_in)) {
    std::map<int, size_t> places;
    place_of_member_.reserve(this->group().global_ranks.size());
    for (size_t place = 0; const int rank : this->group().global_ranks) {
      const int representative = in_place_of(rank);
      if (alike_.empty() || alike_[place].representative != representative)
        place = places.try_emplace(representative, alike_.size()).first->second;
      if (place == alike_.size()) alike_.push_back({representative, 0});
      ++alike_[place].members;
      place_of_member_.push_back(static_cast<int64_t>(place));
    }
    running_ = static_cast<int>(alike_.size());
  }

  PeerMemoryPtr peer_memory() override { return make_meta_peer_memory(group()); }

  WorkPtr post(Call call) override {
    const bool sends = call.verb == Verb::kSend, message = sends || call.verb == Verb::kRecv;
    MeetingKey key{.communicator = number_};
    if (message) {
      key.from = sends ? rank() : call.peer;
      key.to = sends ? call.peer : rank();
      key.tag = call.tag;
    }
    key.number = numbers_[{key.from, key.to, key.tag}]++;
    const at::Tensor given = call.input.defined() && call.input.is_cpu() ? kept(call.input) : at::Tensor();
    const CallTimes times{
        .matched_virtual_ns = call.posted_virtual_ns, .matched_bytes = call.posted_bytes, .sequence = key.number};
    // If this rank also stands in for its peer, its own call is both ends of the message.
    const bool to_itself = message && in_place_of(group().global_ranks[static_cast<size_t>(call.peer)]) ==
                                          group().global_ranks[static_cast<size_t>(rank())];
    MetaWork::Waited waited{.meetings = {}, .key = key, .expected = !message ? running_ : to_itself ? 1 : 2};
    if (waited.expected == 1) {
      if (given.defined()) finish(call, {{group().global_rank(), given}});
    } else {
      waited.meetings = meetings_;
      meetings_->arrive(key, group().global_rank(), {call.posted_virtual_ns, call.posted_bytes, given});
      if (given.defined()) waited.finish = [this, call](const Members& members) { finish(call, members); };
    }
    return std::make_shared<MetaWork>(call.input, call.output, times, std::move(waited));
  }

 private:
  int in_place_of(int rank) const { return (*stand_in_)[static_cast<size_t>(rank)]; }
  // The members of the group that one rank stands in for.
  struct Alike {
    int representative;
    int64_t members;
  };
  // The value from a representative. If the representative is not in the group and takes no part in the call, this
  // rank's own value is used.
  const at::Tensor& given_by(const Alike& alike, const Members& members) const {
    const auto found = members.find(alike.representative);
    return found != members.end() ? found->second : members.at(group().global_rank());
  }

  static at::Tensor kept(const at::Tensor& value) {
    const NoCostScope free;
    return value.clone();
  }

  static at::Tensor combined(ReduceOp op, const at::Tensor& a, const at::Tensor& b) {
    if (op == ReduceOp::kMax) return at::maximum(a, b);
    return op == ReduceOp::kMin ? at::minimum(a, b) : a + b;
  }

  // Executes the verbs that the engine uses for its own values. Cost: proportional to the number of representatives,
  // not of members, of which there may be thousands.
  void finish(const Call& call, const Members& members) const {
    const NoCostScope free;  // not a kernel of the rank: its communication library does this
    if (call.verb == Verb::kAllGather) {
      std::vector<at::Tensor> rows;
      for (const Alike& alike : alike_) rows.push_back(given_by(alike, members));
      const at::Tensor places = at::tensor(place_of_member_, at::kLong);
      at::Tensor(call.output).copy_(at::stack(rows).index_select(0, places).flatten(0, 1));
    } else if (call.verb == Verb::kAllReduce) {
      at::Tensor(call.output).copy_(reduced(call.op, members));
    } else if (call.verb == Verb::kBroadcast) {
      const Alike& sender = alike_[static_cast<size_t>(place_of_member_[static_cast<size_t>(call.peer)])];
      at::Tensor(call.output).copy_(given_by(sender, members));
    }
  }

  at::Tensor reduced(ReduceOp op, const Members& members) const {
    const bool sums = op != ReduceOp::kMax && op != ReduceOp::kMin;
    at::Tensor total;
    for (const Alike& alike : alike_) {
      const at::Tensor& own = given_by(alike, members);
      const at::Tensor value = sums ? own * alike.members : own;
      total = total.defined() ? combined(op, total, value) : value.clone();
    }
    return op == ReduceOp::kAvg ? total / size() : total;
  }

  int number_;
  std::shared_ptr<Meetings> meetings_;
  std::shared_ptr<const std::vector<int>> stand_in_;
  int running_ = 0;
  std::vector<Alike> alike_;
  std::vector<int64_t> place_of_member_;  // index into alike_
  std::map<std::tuple<int, int, int>, int64_t> numbers_;
};

}  // namespace

CommunicatorPtr make_meta_communicator(Group group, const std::string& label, std::shared_ptr<Meetings> meetings,
                                       std::shared_ptr<const std::vector<int>> stand_in) {
  return std::make_shared<MetaCommunicator>(std::move(group), label, std::move(meetings), std::move(stand_in));
}

}  // namespace ranklab::meta
