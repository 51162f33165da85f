#include "backends/cuda/nccl/call_compare.h"

#include <array>
#include <sstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/call_check.h"

namespace ranklab {
namespace {

std::string rows_text(const std::vector<int64_t>& rows) { return join(std::span<const int64_t>(rows), " "); }

// One member's call in the form stored in the key-value store: four lines.
struct StoredCall {
  std::string signature;
  std::vector<int64_t> sent_rows, received_rows;  // for an all_to_all, per member
  std::string site;

  std::string pack() const {
    return signature + "\n" + rows_text(sent_rows) + "\n" + rows_text(received_rows) + "\n" + site;
  }
  static StoredCall unpack(const std::string& text) {
    std::istringstream in(text);
    std::array<std::string, 4> lines;
    for (std::string& line : lines) std::getline(in, line);
    return {lines[0], rows_of(lines[1]), rows_of(lines[2]), lines[3]};
  }
  std::string show() const {
    const std::string rows = sent_rows.empty() ? ""
                                               : " sending rows [" + rows_text(sent_rows) + "], receiving [" +
                                                     rows_text(received_rows) + "]";
    return signature + rows + " at " + site;
  }

 private:
  static std::vector<int64_t> rows_of(const std::string& line) {
    std::istringstream in(line);
    std::vector<int64_t> rows;
    for (int64_t row = 0; in >> row;) rows.push_back(row);
    return rows;
  }
};

StoredCall stored_call(const Call& call) {
  StoredCall stored{signature(call), {}, {}, describe(call.site)};
  if (call.verb == Verb::kAllToAll) {
    stored.sent_rows = call.input_splits;
    stored.received_rows = call.output_splits;
  }
  return stored;
}

// Whether the two calls match: `mine` by member a and `theirs` by member b.
bool fit(const StoredCall& mine, size_t a, const StoredCall& theirs, size_t b) {
  if (mine.signature != theirs.signature) return false;
  if (mine.sent_rows.empty()) return true;
  return mine.sent_rows.at(b) == theirs.received_rows.at(a) && theirs.sent_rows.at(a) == mine.received_rows.at(b);
}

std::string key_of(const Group& group, int serial, const Call& call, int64_t sequence) {
  std::string key = "calls/" + group.label() + "/" + std::to_string(serial) + "/";
  if (is_message(call)) {
    const bool send = call.verb == Verb::kSend;
    const int from = send ? group.group_rank : call.peer, to = send ? call.peer : group.group_rank;
    key += std::to_string(from) + ">" + std::to_string(to) + "." + std::to_string(call.lane) + "/";
  }
  return key + std::to_string(sequence) + "/";
}

}  // namespace

std::string signature(const Call& call) {
  const at::Tensor& tensor = payload(call);
  std::string text = is_message(call) ? "message" : std::string(name(call.verb));
  if (call.verb == Verb::kAllReduce || call.verb == Verb::kReduceScatter)
    text += "(" + std::string(name(call.op)) + ")";
  if (call.verb == Verb::kBroadcast) text += " root " + std::to_string(call.peer);
  if (!tensor.defined()) return text;
  text += " " + std::string(c10::toString(tensor.scalar_type())) + " [";
  const bool rows_differ = call.verb == Verb::kAllGather || call.verb == Verb::kAllToAll;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    text += (dim > 0 ? ", " : "") + (dim == 0 && rows_differ ? "rows" : std::to_string(tensor.size(dim)));
  }
  text += "]";
  if (call.verb == Verb::kReduceScatter) text += " rows " + rows_text(call.input_splits);
  if (call.verb == Verb::kAllGather) text += " rows " + rows_text(call.output_splits);
  return text;
}

void compare_calls(Rendezvous& rendezvous, const Group& group, int serial, const Call& call, int64_t sequence) {
  const std::string key = key_of(group, serial, call, sequence);
  const StoredCall mine = stored_call(call);
  rendezvous.set(key + std::to_string(group.group_rank), mine.pack());
  // Only the receiver compares a message, so that the sender continues without waiting.
  if (call.verb == Verb::kSend) return;
  for (int member = 0; member < group.size(); ++member) {
    if (member == group.group_rank || (is_message(call) && member != call.peer)) continue;
    const int global_rank = group.global_ranks[static_cast<size_t>(member)];
    const StoredCall theirs = StoredCall::unpack(rendezvous.get(key + std::to_string(member), global_rank));
    RANKLAB_CHECK(fit(mine, static_cast<size_t>(group.group_rank), theirs, static_cast<size_t>(member)),
                  ErrorKind::kCommunication, .where = "nccl " + group.label() + " #" + std::to_string(sequence),
                  .what = "members make different calls",
                  .got = "rank " + std::to_string(group.global_rank()) + ": " + mine.show() + "; rank " +
                         std::to_string(global_rank) + ": " + theirs.show(),
                  .want = "the same call on every member", .fix = "look at both places");
  }
}

}  // namespace ranklab
