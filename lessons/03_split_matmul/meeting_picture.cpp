#include "lessons/03_split_matmul/meeting_picture.h"

#include <functional>
#include <string>
#include <vector>

#include "core/base/text.h"

namespace ranklab::lesson {
namespace {

// Rank 0 of 8 without any peers: it only notes which collectives are called.
class NotedCalls final : public Comm {
 public:
  int rank() const override { return 0; }
  int size() const override { return 8; }
  void wait(int /*ticket*/) override {}
  std::string text() const { return calls_.empty() ? "nothing" : join(calls_, ", "); }

 protected:
  using In = std::span<const double>;
  using Out = std::span<double>;
  using Counts = std::span<const size_t>;
  void do_send(In /*data*/, int /*to*/, Site /*site*/) override { calls_.push_back("send"); }
  void do_recv(Out /*data*/, int /*from*/, Site /*site*/) override { calls_.push_back("recv"); }
  void do_send_recv(In /*out*/, int /*to*/, Out /*in*/, int /*from*/, Site /*site*/) override {
    calls_.push_back("send_recv");
  }
  void do_all_gather(In /*mine*/, Out /*all*/, Site /*site*/) override { calls_.push_back("all-gather"); }
  void do_reduce_scatter(In /*all*/, Out /*mine*/, Site /*site*/) override { calls_.push_back("reduce-scatter"); }
  void do_all_to_all(In /*out*/, Counts /*send*/, Out /*in*/, Counts /*recv*/, Site /*site*/) override {
    calls_.push_back("all-to-all");
  }
  int do_start_all_reduce(Out /*data*/, Site /*site*/) override {
    calls_.push_back("all-reduce");
    return 0;
  }
  int do_start_send_recv(In /*out*/, int /*to*/, Out /*in*/, int /*from*/, Site /*site*/) override {
    calls_.push_back("send_recv");
    return 0;
  }

 private:
  std::vector<std::string> calls_;
};

struct Calls {
  std::string enter, leave, leave_backward, enter_backward;
};

Calls calls_of(const MeetingPoints& meet, Outside outside) {
  const size_t here = outside == Outside::kAllTokens ? 16 : 2;
  std::vector<double> all(16, 1.0), mine(here, 1.0);
  const auto noted = [](const std::function<void(Comm&)>& use) {
    NotedCalls comm;
    use(comm);
    return comm.text();
  };
  return {noted([&](Comm& comm) { meet.enter(comm, outside, mine, all); }),
          noted([&](Comm& comm) { meet.leave(comm, outside, all, mine); }),
          noted([&](Comm& comm) { meet.leave_backward(comm, outside, mine, all); }),
          noted([&](Comm& comm) { meet.enter_backward(comm, outside, all, mine); })};
}

void draw_mode(Screen& picture, const std::string& title, const Calls& yours) {
  const auto arrow = [](const std::string& call, bool forward) {
    const int wide = 16, dashes = wide - columns_of(call);
    return (forward ? "" : "<") + repeated("─", dashes / 2) + " " + call + " " + repeated("─", dashes - dashes / 2) +
           (forward ? ">" : "");
  };
  picture.line("  " + picture.paint(Ink::kBold, title));
  picture.line("    forward    x norm  " + arrow(yours.enter, true) + "  A act B  " + arrow(yours.leave, true) + "  y");
  picture.line("    backward  dx norm  " + arrow(yours.enter_backward, false) + "  A act B  " +
               arrow(yours.leave_backward, false) + "  dy");
}

}  // namespace

void draw_meeting_points(Screen& picture, const MeetingPoints& meet) {
  draw_mode(picture, "tensor parallel, yours", calls_of(meet, Outside::kAllTokens));
  draw_mode(picture, "with sequence parallelism, yours", calls_of(meet, Outside::kMyTokens));
  picture.paragraph(
      "A split is correct if its collectives form pairs, one below the other: nothing and all-reduce, all-gather and "
      "reduce-scatter.");
}

}  // namespace ranklab::lesson
