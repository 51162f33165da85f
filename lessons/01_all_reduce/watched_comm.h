// A communicator that calls back before each message is sent, so that a picture can show what a rank held at that
// moment. Thread rule: the rank's thread.
#pragma once
#include <functional>
#include <utility>

#include "lessons/lesson_api.h"

namespace ranklab::lesson {

class WatchedComm final : public Comm {
 public:
  WatchedComm(Comm& inner, std::function<void()> before_send) : inner_(inner), before_send_(std::move(before_send)) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void wait(int ticket) override { inner_.wait(ticket); }

 protected:
  using In = std::span<const double>;
  using Out = std::span<double>;
  using Counts = std::span<const size_t>;
  void do_send(In data, int to, Site site) override {
    before_send_();
    inner_.send(data, to, site);
  }
  void do_recv(Out data, int from, Site site) override { inner_.recv(data, from, site); }
  void do_send_recv(In out, int to, Out in, int from, Site site) override {
    before_send_();
    inner_.send_recv(out, to, in, from, site);
  }
  void do_all_gather(In mine, Out all, Site site) override { inner_.all_gather(mine, all, site); }
  void do_reduce_scatter(In all, Out mine, Site site) override { inner_.reduce_scatter(all, mine, site); }
  void do_all_to_all(In out, Counts send, Out in, Counts recv, Site site) override {
    inner_.all_to_all(out, send, in, recv, site);
  }
  int do_start_all_reduce(Out data, Site site) override { return inner_.start_all_reduce(data, site); }
  int do_start_send_recv(In out, int to, Out in, int from, Site site) override {
    before_send_();
    return inner_.start_send_recv(out, to, in, from, site);
  }

 private:
  Comm& inner_;
  std::function<void()> before_send_;
};

}  // namespace ranklab::lesson
